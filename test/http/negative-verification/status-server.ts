import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync } from 'node:zlib';
import type { BackendAnswer } from '../../support/backend.ts';
import { now } from '../../support/raw-wallet.ts';
import { jws, type Members, type Signer } from '../../support/sd-jwt-maker.ts';
import type { World } from './world.ts';

/** Statuses of the entries 0 to 3, two bits each, and 0 for those that follow (Token Status List section 4.1). */
const LIST = deflateSync(Buffer.concat([Buffer.of(0b11_10_01_00), Buffer.alloc(24)])).toString('base64url');
const MEDIA_TYPE = 'application/statuslist+jwt';

export type ListBend = {
  readonly header?: Members;
  readonly payload?: Members;
  readonly signer?: Signer;
  /** Signs in the signer's place, under the signer's certificates. */
  readonly key?: Signer['key'];
  readonly contentType?: string;
  /** Replaces the whole answer. */
  readonly answer?: BackendAnswer;
};

let lists = 0;

/** Publishes a status list that is right in every respect that `bend` does not touch. @returns its address. */
export function publish({ backend, issuer }: World, bend: ListBend = {}): string {
  const path = `/lists/${lists++}`;
  const uri = backend.url + path;
  const { signer = issuer } = bend;
  const status_list = { bits: 2, lst: LIST };
  const payload = { sub: uri, iat: now(), exp: now() + 3600, ttl: 600, status_list, ...bend.payload };
  const header = { alg: 'ES256', typ: 'statuslist+jwt', x5c: signer.chain, ...bend.header };
  const token = jws(header, payload, bend.key ?? signer.key);
  const { answer, contentType = MEDIA_TYPE } = bend;
  backend.on(
    path,
    answer ?? ((response) => response.writeHead(200, { 'Content-Type': contentType }).end(token)),
  );
  return uri;
}

/**
 * The same list, behind so many redirects.
 * @returns the address where it stood once, which the list goes on to speak of unless it is bent.
 */
export function publishMoved(world: World, redirects: number, bend: ListBend = {}): string {
  const { backend } = world;
  const paths = Array.from({ length: redirects }, () => `/moved/${lists++}`);
  const uri = `${backend.url}${paths[0]}`;
  const last = publish(world, { ...bend, payload: { sub: uri, ...bend.payload } });
  for (const [index, path] of paths.entries()) {
    const location = paths[index + 1] ?? last;
    backend.on(path, (response) => response.writeHead(302, { Location: location }).end());
  }
  return uri;
}

/** A server at an address that the service may not call; whatever reaches it is counted. */
export async function hiddenServer(): Promise<{
  url: string;
  calls: () => number;
  close: () => Promise<void>;
}> {
  let calls = 0;
  const server = createServer((_, response) => {
    calls++;
    response.end();
  });
  server.on('connection', () => calls++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  return { url: `http://127.0.0.2:${port}`, calls: () => calls, close };
}
