import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';

/**
 * TLS as `sslmode` and `sslrootcert` of the address say, which libpq names so: none, or one in which the server has shown
 * a certificate of an authority (`verify-ca`) for the name that was called (`verify-full`).
 * @throws Error when the file of the authority cannot be read.
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
    // The driver names no host to Node when it is an address, and Node then looks for `localhost`.
    checkServerIdentity: (_name, certificate) => {
      if (mode !== 'verify-full') return undefined;
      // Loaded when it is wanted: most databases are called without.
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
