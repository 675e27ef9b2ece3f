//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func nodeInside() {}

func runNode(context.Context, []string, io.Writer, io.Writer) (int, error) {
	return 0, errors.New("a node needs Linux: its pods are Linux containers")
}
