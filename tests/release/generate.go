// Generate writes the SDKs of a package for Go and TypeScript, as `pulumi package gen-sdk` does.
//
// Usage: generate SCHEMA FOLDER
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"

	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

// The package needs no other one, and none is loaded.
type none struct{ schema.ReferenceLoader }

func main() {
	content, err := os.ReadFile(os.Args[1])
	check(err)
	// A package is bound once for each language, which adds its own to it.
	files, err := golang.GeneratePackage("karpstack", bind(content), nil)
	check(err)
	write(filepath.Join(os.Args[2], "go"), files)
	files, err = nodejs.GeneratePackage("karpstack", bind(content), nil, nil, false, none{})
	check(err)
	write(filepath.Join(os.Args[2], "nodejs"), files)
}

func bind(content []byte) *schema.Package {
	var spec schema.PackageSpec
	check(json.Unmarshal(content, &spec))
	bound, diagnostics, err := schema.BindSpec(spec, none{}, schema.ValidationOptions{})
	check(err)
	if diagnostics.HasErrors() {
		log.Fatal(diagnostics)
	}
	return bound
}

func write(folder string, files map[string][]byte) {
	for name, content := range files {
		path := filepath.Join(folder, name)
		check(os.MkdirAll(filepath.Dir(path), 0o700))
		check(os.WriteFile(path, content, 0o600))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
