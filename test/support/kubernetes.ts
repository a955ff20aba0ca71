import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { BaoTls } from './openbao.ts';

const REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export type Cluster = {
  readonly address: string;
  /** The token that a pod of the service account finds in its file. */
  readonly token: string;
  end(): Promise<void>;
};

/** The one call of a cluster that a login needs: it vouches for the token of one service account, `vidimus/vidimus`. */
export async function startCluster(tls: BaoTls): Promise<Cluster> {
  const token = serviceAccountToken();
  const files = { cert: readFileSync(tls.certificate), key: readFileSync(tls.key) };
  const server = createServer(files, async (asked, answer) => {
    const parts: Buffer[] = [];
    for await (const part of asked) parts.push(part as Buffer);
    const review = asked.url === REVIEWS ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
    const user = { username: 'system:serviceaccount:vidimus:vidimus', uid: 'one', groups: [] };
    const status =
      review?.spec?.token === token
        ? { authenticated: true, user, audiences: review.spec.audiences }
        : { authenticated: false };
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status };
    answer.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    end: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Who asks has the cluster judge it, so that its signature may be any. */
function serviceAccountToken(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const serviceaccount = { name: 'vidimus', uid: 'one' };
  const seconds = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    aud: ['https://kubernetes.default.svc.cluster.local'],
    sub: 'system:serviceaccount:vidimus:vidimus',
    'kubernetes.io': { namespace: 'vidimus', serviceaccount },
    iat: seconds,
    nbf: seconds,
    exp: seconds + 3600,
  };
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${Buffer.alloc(256).toString('base64url')}`;
}
