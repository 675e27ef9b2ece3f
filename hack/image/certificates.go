package main

import (
	"bytes"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificatesModule is where the certificates come from.
const certificatesModule = "golang.org/x/crypto/x509roots/fallback"

// publicAuthorities are the certificates that Mozilla trusts, in PEM. Those that
// it trusts for a part of their certificates only are left out: a file cannot
// say which part.
func publicAuthorities() ([]byte, error) {
	var file bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&file, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("encoding the authorities' certificates: %w", err)
		}
	}
	return file.Bytes(), nil
}
