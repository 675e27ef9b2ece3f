{{/*
What every object's name begins with: the release's name, with the chart's in it.
The longest name adds 35 letters to it, and may have 63.
*/}}
{{- define "bucketoperator.prefix" -}}
{{- $prefix := ternary .Release.Name (printf "%s-bucketoperator" .Release.Name) (contains "bucketoperator" .Release.Name) -}}
{{- if contains "." $prefix -}}
{{- fail (printf "the release's name %q has a dot, which the name of a Service may not have" .Release.Name) -}}
{{- end -}}
{{- if gt (len $prefix) 28 -}}
{{- fail (printf "the release's name %q is too long: names that begin with %q must fit into 63 letters, so that may have 28" .Release.Name $prefix) -}}
{{- end -}}
{{- $prefix -}}
{{- end -}}

{{- define "bucketoperator.manager" -}}
{{ include "bucketoperator.prefix" . }}-controller-manager
{{- end -}}

{{- define "bucketoperator.labels" -}}
app.kubernetes.io/name: bucketoperator
app.kubernetes.io/part-of: bucketoperator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What finds the operator's pods: there is one operator in a namespace. */}}
{{- define "bucketoperator.selector" -}}
app.kubernetes.io/name: bucketoperator
app.kubernetes.io/component: controller-manager
{{- end -}}

{{- define "bucketoperator.managerLabels" -}}
{{ include "bucketoperator.labels" . }}
app.kubernetes.io/component: controller-manager
{{- end -}}

{{- define "bucketoperator.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{/* All kinds, as `kubectl get` takes them. */}}
{{- define "bucketoperator.resources" -}}
{{- $names := list -}}
{{- range $file, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $names = append $names ($.Files.Get $file | fromYaml).metadata.name -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{- define "bucketoperator.account" -}}
- kind: ServiceAccount
  name: {{ include "bucketoperator.manager" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}

{{/*
The roles in a copied file, with the names, the namespace and the labels of this
release: a list of the chart's root and the file.
*/}}
{{- define "bucketoperator.roles" -}}
{{- $root := first . -}}
{{- range $text := $root.Files.Get (last .) | trimPrefix "---\n" | splitList "\n---\n" -}}
{{- $role := fromYaml $text -}}
{{- $metadata := $role.metadata -}}
{{- $_ := set $metadata "name" (include "bucketoperator.roleName" (list $root $metadata.name)) -}}
{{- if $metadata.namespace -}}
{{- $_ := set $metadata "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- $_ := set $metadata "labels" (merge (include "bucketoperator.labels" $root | fromYaml) ($metadata.labels | default dict)) }}
---
{{ toYaml $role }}
{{- end -}}
{{- end -}}

{{- define "bucketoperator.roleName" -}}
{{ include "bucketoperator.prefix" (first .) }}-{{ last . | trimPrefix "bucketoperator-" }}
{{- end -}}
