import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { BaoTls } from './openbao.ts';

/** An authority and a certificate of it for 127.0.0.1, as files in the folder. */
export function makeTls(folder: string): BaoTls {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...newKey, '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.pem');
  const name = ['-subj', '/CN=vault', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const issued = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-keyout', 'server.key', '-out', 'server.pem'];
  openssl('req', '-x509', ...newKey, ...name, ...issued);
  const file = (each: string) => join(folder, each);
  return { certificate: file('server.pem'), key: file('server.key'), ca: file('ca.pem') };
}
