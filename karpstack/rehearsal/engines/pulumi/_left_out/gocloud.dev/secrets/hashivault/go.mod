// Stands in for the module of this name when the engine is built (see builder.py).
module gocloud.dev/secrets/hashivault

go 1.26.0
