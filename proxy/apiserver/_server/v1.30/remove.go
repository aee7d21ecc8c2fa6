package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

func remove(ctx context.Context, s storage.Interface, key string, out runtime.Object, validate storage.ValidateObjectFunc) error {
	return s.Delete(ctx, key, out, nil, validate, nil)
}
