import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

/**
 * TLS as the libpq parameters `sslmode` and `sslrootcert` of the address request it: none, or a server certificate of that authority
 * (`verify-ca`) for the host name of the address (`verify-full`).
 * @throws Error if the file of the authority cannot be read.
 */
export function postgresTls(address: string): ConnectionOptions | false {
  const { searchParams, hostname } = new URL(address);
  const host = hostname.replace(/^\[|\]$/g, '');
  const mode = searchParams.get('sslmode') ?? 'disable';
  if (mode === 'disable') return false;
  const file = searchParams.get('sslrootcert');
  return {
    rejectUnauthorized: true,
    ...(file !== null && { ca: readAuthority(file) }),
    // The driver passes no host to Node if it is an IP address, and Node then checks for `localhost`.
    checkServerIdentity: (_name, certificate) => {
      if (mode !== 'verify-full') return undefined;
      // Loaded lazily: most databases are used without it.
      return process.getBuiltinModule('node:tls').checkServerIdentity(host, certificate);
    },
  };
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Error(`sslrootcert ${file} cannot be read`, { cause });
  }
}
