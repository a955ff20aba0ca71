import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

/**
 * Reads the TLS options from the libpq parameters `sslmode` and `sslrootcert` of a database address. `disable`, the default, is without
 * TLS; `verify-ca` requires a server certificate of the authority in `sslrootcert`, and `verify-full` one for the host name of the address.
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
