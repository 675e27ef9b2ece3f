package child

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownedFields are the fields that a manager owns, as managed fields have them:
// fields by "f:<name>", the items of a list by "k:<their keys>". An empty one that
// is not nil is owned as a whole.
type ownedFields map[string]any

// ownedBy are the fields that a manager has applied to a live object.
func ownedBy(manager string, live client.Object) ownedFields {
	for _, entry := range managedFieldsOf([]string{manager}, live.GetManagedFields()) {
		var fields ownedFields
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			return fields
		}
	}
	return nil
}

// field is what is owned of a field, and whether anything is.
func (o ownedFields) field(name string) (ownedFields, bool) {
	if o != nil && len(o) == 0 {
		return o, true
	}
	inner, ok := o["f:"+name].(map[string]any)
	return inner, ok
}

// item is what is owned of an item of a list.
func (o ownedFields) item(item any) ownedFields {
	if o != nil && len(o) == 0 {
		return o
	}
	for key, inner := range o {
		if keys, ok := strings.CutPrefix(key, "k:"); ok && identifies(keys, item) {
			inner, _ := inner.(map[string]any)
			return inner
		}
	}
	return nil
}

// identifies tells whether the keys, in JSON, are an item's. One that the item
// does not name has its default there.
func identifies(keys string, item any) bool {
	var named map[string]any
	fields, ok := item.(map[string]any)
	if !ok || json.Unmarshal([]byte(keys), &named) != nil {
		return false
	}
	for key, value := range named {
		if have, ok := fields[key]; ok && have != value {
			return false
		}
	}
	return true
}

// maxManagedFields bounds the managed fields of one manager that a cache holds,
// in bytes: a user can write there what they like. Without them a child is
// applied at each pass.
const maxManagedFields = 32 << 10

// managedFieldsOf are the fields that each manager has applied to the object itself.
func managedFieldsOf(managers []string, all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, manager := range managers {
		i := slices.IndexFunc(all, func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
		})
		if i >= 0 && all[i].FieldsV1 != nil && all[i].FieldsV1.GetRawReader().Size() <= maxManagedFields {
			kept = append(kept, all[i])
		}
	}
	return kept
}
