#!/bin/sh
# Brings Helm, kubeconform and the API of Kubernetes as a document, all by the proxy of Go modules, into a folder:
# `install-tools.sh <folder>`. Building them takes some minutes, so what is there already stays.
set -eu
tools="${1:?usage: install-tools.sh <folder>}"
helm=v3.22.0 kubeconform=v0.8.0 kubernetes=v0.37.0
go=1.26.8 go_sum=30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7
mkdir -p "$tools"
[ ! -e "$tools/swagger.json" ] || exit 0

is_new_enough() { command -v go >/dev/null && [ "$(printf 'go1.26\n%s\n' "$(go env GOVERSION)" | sort -V | head -n 1)" = go1.26 ]; }

if ! is_new_enough; then
  # That of a distribution is older than these need.
  proxy="${GOPROXY:-https://proxy.golang.org}"
  curl -sfo "$tools/go.zip" "${proxy%%,*}/golang.org/toolchain/@v/v0.0.1-go$go.linux-amd64.zip"
  echo "$go_sum  $tools/go.zip" | sha256sum -c --quiet
  python3 -m zipfile -e "$tools/go.zip" "$tools/go"
  rm "$tools/go.zip"
  PATH="$tools/go/golang.org/toolchain@v0.0.1-go$go.linux-amd64/bin:$PATH"
  chmod -R +x "${PATH%%:*}" "${PATH%%/bin:*}/pkg/tool"
fi
cd "$tools"
export GOBIN="$tools" GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=0
go install "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform"
go install "helm.sh/helm/v3/cmd/helm@$helm"
# Of the same module that Helm is built of.
folder="$(go mod download -json "k8s.io/cli-runtime@$kubernetes" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')"
cp "$folder/artifacts/openapi/swagger.json" swagger.json.new
chmod 644 swagger.json.new
mv swagger.json.new swagger.json
