/** TLS faults by the codes of Node and OpenSSL. None of them names a host, an address or a certificate. */
const TLS_REASONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate of the server has expired',
  CERT_NOT_YET_VALID: 'the certificate of the server is not valid yet',
  CERT_REVOKED: 'the certificate of the server was revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is for another host name',
  HOSTNAME_MISMATCH: 'the certificate of the server is for another host name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the server is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the server is issued by an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate of the server is issued by an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'the certificate of the server is issued by an authority that is not trusted, or its chain is incomplete',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'the certificate of the server is issued by an authority that is not trusted, or its chain is incomplete',
  CERT_UNTRUSTED: 'the certificate of the server is not trusted',
  CERT_REJECTED: 'the certificate of the server is not trusted',
  CERT_SIGNATURE_FAILURE: 'the signature of the certificate of the server is invalid',
  CERT_CHAIN_TOO_LONG: 'the certificate chain of the server is too long',
  PATH_LENGTH_EXCEEDED: 'the certificate chain of the server is too long',
  INVALID_CA: 'the certificate chain of the server contains a certificate that is not an authority',
  INVALID_PURPOSE: 'the certificate of the server is not for servers',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS at this port',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not speak TLS at this port',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the server offers no supported version of TLS',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the server offers no supported version of TLS',
  ERR_SSL_NO_CIPHERS_AVAILABLE: 'the server offers no supported cipher',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'the server requires a client certificate',
};
const CONNECTION_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed before the response was complete',
  UND_ERR_CONNECT_TIMEOUT: 'the connection was not accepted in time',
  ETIMEDOUT: 'the connection was not accepted in time',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  EHOSTDOWN: 'the host is down',
  EADDRNOTAVAIL: 'there is no local address for the connection',
  EMFILE: 'this service has no free file descriptors',
  ENFILE: 'this machine has no free file descriptors',
};

/**
 * Reason why no response arrived, for the operator of the tenant: DNS, connection, TLS with its cause, or HTTP. It contains neither
 * addresses nor names, which a tenant need not know, nor parts of the request.
 * @returns undefined for a cause without a known code.
 */
export function connectionFault(cause: unknown): string | undefined {
  for (const code of codesOf(cause)) {
    const tls = Object.hasOwn(TLS_REASONS, code) ? TLS_REASONS[code] : undefined;
    if (tls !== undefined) return `TLS: ${tls}`;
    if (/^(?:ERR_SSL_|ERR_TLS_|EPROTO$)/.test(code)) return 'TLS: the handshake failed';
    if (/^(?:CERT_|CRL_|UNABLE_TO_)/.test(code)) return 'TLS: the certificate of the server is not valid';
    const connection = Object.hasOwn(CONNECTION_REASONS, code) ? CONNECTION_REASONS[code] : undefined;
    if (connection !== undefined) return connection;
    if (/^(?:HPE_|UND_ERR_(?:HEADERS_OVERFLOW|RES_|HTTP_PARSER))/.test(code)) return 'HTTP: the response is not valid';
  }
  return undefined;
}

/** Reason why a name could not be resolved. */
export function nameFault(cause: unknown): string {
  const [code] = codesOf(cause);
  if (code === 'ENOTFOUND' || code === 'ENODATA' || code === undefined) return 'DNS: the host name cannot be resolved';
  if (code === 'ETIMEOUT') return 'DNS: the name server did not answer in time';
  if (code === 'ECONNREFUSED') return 'DNS: the name server is not reachable';
  return 'DNS: the name server reports a failure';
}

const MAX_CAUSES = 5;

/** Codes of an error, of its causes, and of its attempts at several addresses. */
function codesOf(error: unknown, remainingDepth = MAX_CAUSES): readonly string[] {
  if (!(error instanceof Error) || remainingDepth === 0) return [];
  const { code, cause, errors } = error as Error & { code?: unknown; errors?: unknown };
  const attempts = Array.isArray(errors) ? errors.slice(0, MAX_CAUSES) : [];
  return [
    ...(typeof code === 'string' ? [code] : []),
    ...attempts.flatMap((attempt) => codesOf(attempt, remainingDepth - 1)),
    ...codesOf(cause, remainingDepth - 1),
  ];
}
