# What the service needs in OpenBao, and no more: its keys, and nothing about who may use them.
path "transit/keys/*" { capabilities = ["create", "read", "update", "delete"] }
path "transit/sign/*" { capabilities = ["update"] }
path "transit/wrapping_key" { capabilities = ["read"] }
