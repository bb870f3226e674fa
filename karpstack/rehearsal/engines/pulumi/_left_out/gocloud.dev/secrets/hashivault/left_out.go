// Package hashivault registers nothing: whoever asks for its scheme is told that no driver is registered.
package hashivault
