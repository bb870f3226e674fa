// Stands in for the module of this name when the engine is built (see builder.py).
module google.golang.org/api

go 1.26.0
