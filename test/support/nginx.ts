import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../demo/process.ts';
import { type RunningProgram, startProgram } from './programs.ts';

const NGINX = '/usr/sbin/nginx';
const CONFIGURATION = new URL('../../deploy/compose/nginx.conf', import.meta.url);

export type Nginx = {
  /** The https address; `certificate` is its certificate. */
  readonly address: string;
  readonly plainAddress: string;
  readonly certificate: string;
  /** Folder of its configuration and certificate. */
  readonly folder: string;
  readonly program: RunningProgram;
  close(): Promise<void>;
};

/** @returns false without nginx, and prints one line; with `CI=true` that throws. */
export function hasNginx(): boolean {
  if (existsSync(NGINX)) return true;
  if (process.env['CI'] === 'true') throw new Error('CI needs nginx.');
  console.log('    nginx is skipped: install the package nginx of the system to run it');
  return false;
}

/**
 * The configuration of `deploy/`, on free ports and in front of processes on this machine; otherwise unchanged.
 * @param ports of the two processes.
 */
export async function startNginx(ports: readonly [number, number]): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-nginx-'));
  // Workers of nginx run under another account, which needs access to the folder.
  chmodSync(folder, 0o711);
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const opensslOptions = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '60'];
  execFileSync('openssl', ['req', '-x509', ...opensslOptions, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' });
  const [securePort, plainPort] = [await freePort(createServer), await freePort(createServer)];
  let text = readFileSync(CONFIGURATION, 'utf8');
  for (const [configuredText, localText] of [
    ['172.30.77.11:3000', `127.0.0.1:${ports[0]}`],
    ['172.30.77.12:3000', `127.0.0.1:${ports[1]}`],
    ['/etc/nginx/tls/', `${folder}/`],
    ['listen 443 ssl', `listen 127.0.0.1:${securePort} ssl`],
    ['listen 80;', `listen 127.0.0.1:${plainPort};`],
    [' /tmp/', ` ${folder}/`],
  ] as const) {
    if (!text.includes(configuredText)) throw new Error(`the configuration of nginx does not have ${configuredText}`);
    text = text.replaceAll(configuredText, localText);
  }
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, text);
  execFileSync(NGINX, ['-t', '-q', '-c', file, '-p', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  const args = ['-c', file, '-p', folder, '-g', 'daemon off;'];
  const program = startProgram(NGINX, args, { environment: { PATH: process.env['PATH'] } });
  while (!(await isListening(plainPort))) {
    if (program.child.exitCode !== null) throw new Error(`nginx did not start: ${program.output()}`);
    await setTimeout(20);
  }
  return {
    address: `https://localhost:${securePort}`,
    plainAddress: `http://localhost:${plainPort}`,
    certificate: readFileSync(certificate, 'utf8'),
    folder,
    program,
    async close() {
      program.child.kill('SIGQUIT');
      await program.ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
