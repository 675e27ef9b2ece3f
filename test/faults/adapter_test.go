package faults

import (
	"reflect"
	"testing"
)

// An adapter of a kind without anything outside leaves out what it has nothing to say to.
func TestNoFunctionOfAnAdapterIsNilButThoseThatMakeAWorld(t *testing.T) {
	t.Parallel()
	adapter := reflect.ValueOf(Adapter{}.withDefaults()).Elem()
	for i := range adapter.NumField() {
		field := adapter.Type().Field(i)
		if field.Type.Kind() == reflect.Func && adapter.Field(i).IsNil() && field.Name != "Open" && field.Name != "Recreate" {
			t.Errorf("%s is nil", field.Name)
		}
	}
}
