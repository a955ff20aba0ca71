# Reached by the processes of the service alone, on a network that nothing leads to from outside.
listener "tcp" {
  address     = "0.0.0.0:8200"
  tls_disable = true
}

storage "file" {
  path = "/openbao/file"
}

disable_mlock = true
