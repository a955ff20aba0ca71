# Reached by the processes of the service alone, on a network that nothing leads to from outside.
listener "tcp" {
  address         = "0.0.0.0:8200"
  cluster_address = "0.0.0.0:8201"
  tls_disable     = true
}

storage "raft" {
  path    = "/openbao/file"
  node_id = "openbao"
}

api_addr     = "http://openbao:8200"
cluster_addr = "https://openbao:8201"
