package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// billOfMaterials lists what is in the image: the modules that the linker says
// are in the program, the Go standard library, and the certificates.
func billOfMaterials(p program, o options) ([]byte, error) {
	certificates, err := certificatesComponent()
	if err != nil {
		return nil, err
	}
	components := []cdx.Component{standardLibrary(p.info)}
	for _, module := range p.info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		component, err := moduleComponent(module)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	operator := operatorComponent(p, o)

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: o.created.Format(time.RFC3339), Component: &operator}
	// How the modules need one another, the linker does not tell.
	bom.Dependencies = &[]cdx.Dependency{{Ref: operator.BOMRef, Dependencies: references(components)}}
	components = append(components, certificates)
	bom.Components = &components

	var encoded bytes.Buffer
	if err := cdx.NewBOMEncoder(&encoded, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encoding the bill of materials: %w", err)
	}
	return encoded.Bytes(), nil
}

func references(components []cdx.Component) *[]string {
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	return &refs
}

func operatorComponent(p program, o options) cdx.Component {
	sum := sha256.Sum256(p.content)
	c := goComponent(cdx.ComponentTypeApplication, p.info.Main.Path, cmp.Or(o.version, p.info.Main.Version))
	c.Hashes = sha256Hash(sum[:])
	c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	return c
}

func standardLibrary(info *debug.BuildInfo) cdx.Component {
	return goComponent(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))
}

// moduleComponent has the module's checksum as go.sum has it: a hash of the
// hashes of its files.
func moduleComponent(module *debug.Module) (cdx.Component, error) {
	c := goComponent(cdx.ComponentTypeLibrary, module.Path, module.Version)
	encoded, ok := strings.CutPrefix(module.Sum, "h1:")
	if !ok {
		return c, nil // replaced by a folder: there is no checksum
	}
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return cdx.Component{}, fmt.Errorf("reading the checksum of %s: %w", module.Path, err)
	}
	c.Hashes = sha256Hash(sum)
	return c, nil
}

// certificatesComponent is of the version that is linked into this program.
func certificatesComponent() (cdx.Component, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cdx.Component{}, errors.New("finding the version of the certificates: this program was built without modules")
	}
	for _, module := range info.Deps {
		if module.Path == certificatesModule {
			c, err := moduleComponent(module)
			c.Type = cdx.ComponentTypeData
			c.Description = certificatesPath
			return c, err
		}
	}
	return cdx.Component{}, fmt.Errorf("finding the version of the certificates: this program was built without %s", certificatesModule)
}

func goComponent(kind cdx.ComponentType, module, version string) cdx.Component {
	namespace, name := path.Split(module)
	url := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, "").ToString()
	return cdx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
}

func sha256Hash(sum []byte) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
}
