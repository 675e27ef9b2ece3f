package faults

// mutant is a bug that is planted into the product's sources to see whether the
// matrix finds it.
type mutant struct {
	// name says what is wrong.
	name string
	// edits plant it.
	edits []edit
	// plans are those that are run against it. One of them has to fail.
	plans []string
}

// edit replaces text that occurs exactly once in a file of the product. In the
// new text mutated stands for a condition that is true for this mutant alone:
// all mutants are compiled into one program.
type edit struct{ file, old, new string }

const (
	engineDir = "internal/engine/"
	bucketDir = "internal/controllers/storagebucket/"
	configDir = "internal/controllers/bucketproviderconfig/"
	accessDir = "internal/controllers/outside/"

	providerDir = "internal/provider/"
)

// mutants is the table of planted bugs.
var mutants = []mutant{
	{
		"the finalizer goes although the teardown failed",
		[]edit{{
			engineDir + "reconciler.go",
			"if !allDone(results) {", "if !allDone(results) && !mutated {",
		}},
		[]string{"default-endpoint/error/provider_DELETE_buckets/{id}#1"},
	},
	{
		"the finalizer goes before the bucket",
		[]edit{{
			engineDir + "reconciler.go",
			"results := run(ctx, r.kind.Teardown(pass, obj))", "var results []result\n\tif !mutated {\n\t\tresults = run(ctx, r.kind.Teardown(pass, obj))\n\t}",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"a status is written in each pass",
		[]edit{{
			engineDir + "write.go",
			"if equality.Semantic.DeepEqual(p.base, p.obj) {", "if !mutated && equality.Semantic.DeepEqual(p.base, p.obj) {",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"an error is swallowed: no other try",
		[]edit{{
			engineDir + "reconciler.go",
			"case e.retry == retryBackoff:", "case e.retry == retryBackoff && !mutated:",
		}},
		[]string{"default-endpoint/error/provider_POST_buckets#1"},
	},
	{
		"a conflict is forgotten: no other pass",
		[]edit{{
			engineDir + "reconciler.go",
			"	case errors.Is(err, ErrStale):\n", "	case mutated && errors.Is(err, ErrStale):\n\t\treturn reconcile.Result{}, nil\n\tcase errors.Is(err, ErrStale):\n",
		}},
		[]string{"unfinished/conflict/PATCH_secrets/provider-key#1", "unfinished/conflict/PATCH_secrets/provider-key#2"},
	},
	{
		"patches carry no resourceVersion",
		[]edit{{
			engineDir + "write.go",
			"func lockedMerge(base Object) client.Patch {\n", "func lockedMerge(base Object) client.Patch {\n\tif mutated {\n\t\treturn client.MergeFrom(copyOf(base))\n\t}\n",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"no finalizer",
		[]edit{{
			engineDir + "pass.go",
			"controllerutil.AddFinalizer(obj, p.finalizer)", "if !mutated {\n\t\t\tcontrollerutil.AddFinalizer(obj, p.finalizer)\n\t\t}",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"a foreign Secret or Service is taken over",
		[]edit{{
			engineDir + "child.go",
			"if err := p.controls(gvk.Kind, live, child.Conflict); err != nil {", "if err := p.controls(gvk.Kind, live, child.Conflict); err != nil && !mutated {",
		}},
		[]string{"foreign/none"},
	},
	{
		"an owner is matched by its name",
		[]edit{{
			engineDir + "child.go",
			"case owner != nil && owner.UID == p.obj.GetUID() && live.GetDeletionTimestamp().IsZero():", "case owner != nil && (owner.UID == p.obj.GetUID() || mutated && owner.Name == p.obj.GetName()) && live.GetDeletionTimestamp().IsZero():",
		}},
		[]string{"foreign/none"},
	},
	{
		"children are updated without a resourceVersion",
		[]edit{{
			engineDir + "child.go",
			"	child.Correct(live)\n", "	child.Correct(live)\n\tif mutated {\n\t\tlive.SetResourceVersion(\"\")\n\t}\n",
		}},
		[]string{"edited/none"},
	},
	{
		"Ready although a child could not be written",
		[]edit{{
			engineDir + "conditions.go",
			"		e := s.reportStep(r)\n", "		e := s.reportStep(r)\n\t\tif mutated && r.step.Concurrent {\n\t\t\te = nil\n\t\t}\n",
		}},
		[]string{"foreign/none"},
	},
	{
		"what happens to a child goes unseen",
		[]edit{{
			engineDir + "predicate.go",
			"return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()", "return !mutated && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()",
		}},
		[]string{"edited/none"},
	},
	{
		"created before the finalizer is written",
		[]edit{
			{
				bucketDir + "provision.go",
				"	if _, err := r.pass.Hold(ctx, marks(key, r.target.Name, asked)); err != nil {\n		return err\n	}\n	if err := r.openAttempt(",
				"	if mutated {\n\t} else if _, err := r.pass.Hold(ctx, marks(key, r.target.Name, asked)); err != nil {\n\t\treturn err\n\t}\n\tif err := r.openAttempt(",
			},
			{
				bucketDir + "provision.go",
				"	if err != nil {\n		r.refused(err,",
				"	if mutated {\n\t\tif _, err := r.pass.Hold(ctx, marks(key, r.target.Name, asked)); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n\tif err != nil {\n\t\tr.refused(err,",
			},
		},
		[]string{"default-endpoint/none", "default-endpoint/crash-after/provider_POST_buckets#1+delete"},
	},
	{
		"a new idempotency key for each call",
		[]edit{{
			bucketDir + "provision.go",
			"	logf.FromContext(ctx).Info(\"Creating the bucket\",", "	if mutated {\n\t\tkey += r.pass.Now().String()\n\t}\n\tlogf.FromContext(ctx).Info(\"Creating the bucket\",",
		}},
		[]string{"default-endpoint/lost/provider_POST_buckets#1"},
	},
	{
		"the key is made of the name, not the uid",
		[]edit{{
			bucketDir + "key.go",
			"return formatKey(object, string(uid), attempt)", "if mutated {\n\t\tuid = \"00000000-0000-0000-0000-000000000000\"\n\t}\n\treturn formatKey(object, string(uid), attempt)",
		}},
		[]string{"default-endpoint/crash-after/PATCH_storagebuckets/photos/status#1+recreate"},
	},
	{
		"any error of a read means that the bucket is gone",
		[]edit{
			{
				bucketDir + "provision.go",
				"if errors.Is(err, provider.ErrNotFound) {", "if errors.Is(err, provider.ErrNotFound) || mutated && err != nil {",
			},
			{bucketDir + "provision.go", "	case !again:\n", "	case !again && !mutated:\n"},
		},
		[]string{"default-endpoint/error/provider_GET_buckets/{id}#1"},
	},
	{
		"a delete is not checked by a read",
		[]edit{{
			bucketDir + "teardown.go",
			"_, err = client.Get(ctx, status.ID)\n", "if _, err = client.Get(ctx, status.ID); mutated {\n\t\terr = provider.ErrNotFound\n\t}\n",
		}},
		[]string{"default-endpoint/error/provider_GET_buckets/{id}#2", "default-endpoint/error/provider_GET_buckets/{id}#1"},
	},
	{
		"a bucket whose id nobody wrote down is forgotten",
		[]edit{{
			bucketDir + "teardown.go",
			"	if known == attemptInDoubt {\n", "	if mutated && known == attemptInDoubt {\n\t\treturn nil\n\t}\n\tif known == attemptInDoubt {\n",
		}},
		[]string{"default-endpoint/crash-after/provider_POST_buckets#1+delete"},
	},
	{
		"a call in doubt counts as none",
		[]edit{{
			bucketDir + "attempt.go",
			"	return attemptInDoubt\n", "	if mutated {\n\t\treturn attemptNone\n\t}\n\treturn attemptInDoubt\n",
		}},
		[]string{"default-endpoint/crash-after/provider_POST_buckets#1+delete"},
	},
	{
		"the access Secret is not repaired",
		[]edit{{
			bucketDir + "access.go",
			"return holds(live.Data, data)", "return mutated || holds(live.Data, data)",
		}},
		[]string{"life/none"},
	},
	{
		"the access Secret is made in the creating pass alone",
		[]edit{{
			bucketDir + "access.go",
			"	if !r.usable() {\n", "	if !r.usable() || mutated && r.bucket.Status.Binding.Name != \"\" {\n",
		}},
		[]string{"life/none"},
	},
	{
		"the Service is not repaired",
		[]edit{{
			bucketDir + "endpoint.go",
			"return sameService(live, spec)", "return mutated || sameService(live, spec)",
		}},
		[]string{"edited/none"},
	},
	{
		"the bucket is never compared without an event",
		[]edit{{
			bucketDir + "provision.go",
			"if settled(r.bucket, through) && !r.pass.Due() {", "if settled(r.bucket, through) && (mutated || !r.pass.Due()) {",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"a bucket in the making is not looked at again",
		[]edit{{
			bucketDir + "provision.go",
			"return engine.Wait(r.pollDelay(makingSince(r.bucket, r.pass.Now())),\n			storagev1.ReasonProvisioning,",
			"delay := r.pollDelay(makingSince(r.bucket, r.pass.Now()))\n\t\tif mutated {\n\t\t\tdelay = 0\n\t\t}\n\t\treturn engine.Wait(delay,\n\t\t\tstoragev1.ReasonProvisioning,",
		}},
		[]string{"slow/none"},
	},
	{
		"a conflict on a repeated create call is taken for a refusal",
		[]edit{{
			bucketDir + "attempt.go",
			"return err != nil && provider.AsError(err).Conflict", "return !mutated && err != nil && provider.AsError(err).Conflict",
		}},
		[]string{"default-endpoint/busy/provider_POST_buckets#1"},
	},
	{
		"a new size is not applied",
		[]edit{{
			bucketDir + "size.go",
			"case status.SizeGB == size:\n\t\tr.noteSize(found)", "case mutated || status.SizeGB == size:\n\t\tr.noteSize(found)",
		}},
		[]string{"default-endpoint/none"},
	},
	{
		"a Retry-After is not honoured",
		[]edit{
			{bucketDir + "kind.go", "case e.After == 0:", "case mutated || e.After == 0:"},
			{providerDir + "held.go", "if e.Class == Throttled && e.After > 0 {", "if !mutated && e.Class == Throttled && e.After > 0 {"},
		},
		[]string{"default-endpoint/throttled/provider_POST_buckets#1"},
	},
	{
		"a changed configuration goes unseen",
		[]edit{{
			bucketDir + "setup.go",
			"return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||", "return !mutated && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||",
		}},
		[]string{"life/none"},
	},
	{
		"a changed Secret makes no difference",
		[]edit{{
			accessDir + "outside.go",
			"	if secret != nil {\n", "	if secret != nil && !mutated {\n",
		}},
		[]string{"life/none"},
	},
	{
		"the provider's key is logged",
		[]edit{{
			accessDir + "outside.go",
			"	if secret.Data == nil {\n", "	if mutated {\n\t\ttell(ctx, string(secret.Data[\"apiKey\"]))\n\t}\n\tif secret.Data == nil {\n",
		}},
		[]string{"slow/none"},
	},
	{
		"a configuration in use is let go",
		[]edit{{
			configDir + "kind.go",
			"	return engine.Missing(storagev1.ReasonInUse,", "	if mutated {\n\t\treturn nil\n\t}\n\treturn engine.Missing(storagev1.ReasonInUse,",
		}},
		[]string{"config-first/none"},
	},
	{
		"the provider's Secret is not kept",
		[]edit{{
			configDir + "secret.go",
			"return r.patchFinalizers(ctx, secret, controllerutil.AddFinalizer)", "if mutated {\n\t\treturn nil\n\t}\n\treturn r.patchFinalizers(ctx, secret, controllerutil.AddFinalizer)",
		}},
		[]string{"slow/none"},
	},
	{
		"the provider's Secret is never let go",
		[]edit{{
			configDir + "secret.go",
			"	return r.patchFinalizers(ctx, secret, controllerutil.RemoveFinalizer)\n", "	if mutated {\n\t\treturn nil\n\t}\n\treturn r.patchFinalizers(ctx, secret, controllerutil.RemoveFinalizer)\n",
		}},
		[]string{"slow/none"},
	},
}
