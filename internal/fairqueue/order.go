package fairqueue

import "container/heap"

// order is a heap whose items know their place in it, so that one can be moved
// or taken out wherever it is.
type order[T any] struct {
	less  func(a, b T) bool
	place func(item T) *int // 0 while the item is not in the order, else its index plus one
	items []T
}

var _ heap.Interface = (*order[int])(nil)

// put takes an item in, or moves one whose rank has changed.
func (o *order[T]) put(item T) {
	if at := *o.place(item); at > 0 {
		heap.Fix(o, at-1)
	} else {
		heap.Push(o, item)
	}
}

// drop takes an item out, if it is in.
func (o *order[T]) drop(item T) {
	if at := *o.place(item); at > 0 {
		heap.Remove(o, at-1)
	}
}

// first is the item that comes before all others, or the zero value if there is none.
func (o *order[T]) first() T {
	if len(o.items) == 0 {
		return *new(T)
	}
	return o.items[0]
}

// Len is part of heap.Interface.
func (o *order[T]) Len() int { return len(o.items) }

// Less is part of heap.Interface.
func (o *order[T]) Less(i, j int) bool { return o.less(o.items[i], o.items[j]) }

// Swap is part of heap.Interface.
func (o *order[T]) Swap(i, j int) {
	o.items[i], o.items[j] = o.items[j], o.items[i]
	*o.place(o.items[i]), *o.place(o.items[j]) = i+1, j+1
}

// Push is part of heap.Interface.
func (o *order[T]) Push(item any) {
	o.items = append(o.items, item.(T))
	*o.place(item.(T)) = len(o.items)
}

// Pop is part of heap.Interface.
func (o *order[T]) Pop() any {
	last := len(o.items) - 1
	item := o.items[last]
	o.items[last] = *new(T) // what has left must not be kept in memory
	o.items = o.items[:last]
	*o.place(item) = 0
	return item
}
