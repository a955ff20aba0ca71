import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { BaoTls } from './openbao.ts';

/** Values that the chart requires. */
export const REQUIRED_VALUES = { existingSecret: 'vidimus', settings: { PUBLIC_URL: 'https://id.acme.example', TRUST_PROXY: '1' } };
const RULES = 'groups:\n  - name: vidimus\n    rules:\n      - { alert: Down, expr: up == 0, for: 1m }\n';

/** Values of the chart by feature. */
export const VALUES: Readonly<Record<string, object>> = {
  'what is needed': {},
  'an image by its digest': { image: { repository: 'registry.acme.example/vidimus', digest: `sha256:${'a'.repeat(64)}` } },
  'one process': { replicas: 1, networkPolicy: { enabled: false }, podDisruptionBudget: { minAvailable: 1 } },
  'as many as are needed': { autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 9 } },
  'volumes with a storage class': { persistence: { storageClass: 'ssd', size: '2Gi' } },
  'no volumes': { persistence: { enabled: false } },
  'an ingress': { ingress: { enabled: true, className: 'nginx', host: 'id.acme.example', tlsSecret: 'tls', annotations: { a: 'b' } } },
  metrics: {
    metrics: {
      enabled: true,
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true, rules: RULES, labels: { release: 'prometheus' } },
    },
  },
  'keys in Vault': {
    kms: { default: 'house', providers: { house: { type: 'vault', address: 'https://vault', auth: { method: 'kubernetes', role: 'v' } } } },
    serviceAccount: { create: true, name: 'issuer', automountToken: true, annotations: { a: 'b' } },
    extraVolumes: [{ name: 'ca', secret: { secretName: 'ca' } }],
    extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ssl/house', readOnly: true }],
  },
  'custom paths': {
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    podLabels: { team: 'id' },
    podAnnotations: { note: 'x' },
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 'registry' }],
    serviceAccount: { create: false },
  },
};

type Schema = { [name: string]: unknown };
type ResourceKind = { readonly group: string; readonly version: string; readonly kind: string };

/** Formats whose values are texts or numbers. */
const INT_OR_STRING = ['int-or-string', 'quantity'];
const MAX_DEPTH = 40;

/**
 * Writes schemas for kubeconform from the API document of Kubernetes, one file for each kind. Unknown properties are
 * rejected, unlike in the document.
 * @param kinds kinds to write; some others are recursive.
 */
export function writeSchemas(document: string, folder: string, kindNames: readonly string[]): void {
  const { definitions } = JSON.parse(readFileSync(document, 'utf8')) as { definitions: Record<string, Schema> };
  mkdirSync(folder, { recursive: true });
  for (const definition of Object.values(definitions)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as readonly ResourceKind[];
    if (kinds.length !== 1 || !Object.hasOwn((definition['properties'] ?? {}) as object, 'metadata')) continue;
    const [{ group, version, kind }] = kinds as readonly [ResourceKind];
    if (!kindNames.includes(kind)) continue;
    const name = [kind.toLowerCase(), ...(group === '' ? [] : [group.split('.')[0]]), version].join('-');
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(makeStrict(definition, definitions, 0)));
  }
}

function makeStrict(schema: Schema, definitions: Readonly<Record<string, Schema>>, depth: number): Schema {
  const { $ref: reference } = schema;
  if (depth > MAX_DEPTH) return {};
  if (typeof reference === 'string') {
    const name = reference.slice('#/definitions/'.length);
    const definition = definitions[name] ?? {};
    const format = name.endsWith('.Quantity') ? { format: 'quantity' } : {};
    return makeStrict({ ...definition, ...format }, definitions, depth + 1);
  }
  const { type, format, properties, items, additionalProperties: additional, required } = schema;
  if (typeof format === 'string' && INT_OR_STRING.includes(format)) return { type: ['string', 'number'] };
  const nested = (each: unknown) => makeStrict(each as Schema, definitions, depth + 1);
  const result: Schema = { ...(type === undefined ? {} : { type }), ...(required === undefined ? {} : { required }) };
  if (Array.isArray(schema['enum'])) result['enum'] = schema['enum'];
  if (items !== undefined) result['items'] = nested(items);
  if (typeof additional === 'object' && additional !== null) result['additionalProperties'] = nested(additional);
  if (properties !== undefined) {
    const entries = Object.entries(properties as object).map(([name, each]) => [name, nested(each)]);
    result['properties'] = Object.fromEntries(entries);
    if (additional === undefined) result['additionalProperties'] = false;
  }
  return result;
}

const REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';

export type Cluster = {
  readonly address: string;
  /** The service account token of a pod. */
  readonly token: string;
  end(): Promise<void>;
};

/** The TokenReview call of a cluster, which accepts the token of the service account `vidimus/vidimus`. */
export async function startCluster(tls: BaoTls): Promise<Cluster> {
  const token = serviceAccountToken();
  const files = { cert: readFileSync(tls.certificate), key: readFileSync(tls.key) };
  const server = createServer(files, async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const part of request) chunks.push(part as Buffer);
    const review = request.url === REVIEWS ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    const user = { username: 'system:serviceaccount:vidimus:vidimus', uid: 'one', groups: [] };
    const status =
      review?.spec?.token === token ? { authenticated: true, user, audiences: review.spec.audiences } : { authenticated: false };
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status };
    response.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
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

/** The cluster verifies the token, so its signature can be arbitrary. */
function serviceAccountToken(): string {
  const encodePart = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
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
  return `${encodePart({ alg: 'RS256', typ: 'JWT' })}.${encodePart(claims)}.${Buffer.alloc(256).toString('base64url')}`;
}
