{{- define "vidimus.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "vidimus.selector" -}}
app.kubernetes.io/name: vidimus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vidimus.labels" -}}
{{ include "vidimus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "vidimus.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "vidimus.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Empty for no. Values that `helm upgrade --reuse-values` takes from a release before have no persistence. */}}
{{- define "vidimus.persists" -}}
{{- $persistence := .Values.persistence | default dict -}}
{{- if ne (get $persistence "enabled" | toString) "false" -}}true{{- end -}}
{{- end -}}

{{- define "vidimus.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}
