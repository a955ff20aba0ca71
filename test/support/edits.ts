import { expect } from 'chai';
import { credentialBody, type PopulatedTenant, presentationBody, type TenantIds } from './populated.ts';
import type { sharedRegistrar } from './registrar.ts';

type Registrar = Awaited<ReturnType<typeof sharedRegistrar>>;

/** A write to a resource: `n` makes each written value different. */
type Write = { readonly method: string; readonly path: string; readonly json: (n: number) => object };

export type Edit = {
  readonly name: string;
  /** Path at which the resource is read. */
  readonly read: string;
  readonly writes: readonly Write[];
  /** True when the write needs an account that manages tenants. */
  readonly needsServiceRole?: true;
};

const description = (n: number) => ({ description: `Changed ${n}` });

/** All resources of one tenant that `If-Match` protects. */
export function editsOf(ids: TenantIds, registrar: Pick<Registrar, 'login'>): readonly Edit[] {
  const patch = (path: string, json: (n: number) => object = description) => ({ method: 'PATCH', path, json });
  const post = (path: string, json: (n: number) => object) => ({ method: 'POST', path, json });
  const editable = (name: string, read: string, ...writes: readonly Write[]) => ({ name, read, writes });
  const [credential, presentation] = [`/issuer/credentials/${ids.credential}`, `/verifier/config/${ids.presentation}`];
  const [list, statusList] = [`/trust-list/${ids.trustList}`, `/status-lists/${ids.statusList}`];
  const settings = { method: 'PUT', json: (n: number) => ({ ttlSeconds: 5000 + n }) };
  return [
    { ...editable('a tenant', `/tenant/${ids.tenant}`, patch(`/tenant/${ids.tenant}`)), needsServiceRole: true },
    editable(
      'a client',
      `/client/${ids.client}`,
      patch(`/client/${ids.client}`, (n) => ({ roles: ['presentation:request'], ...description(n) })),
    ),
    editable('a key chain', `/key-chain/${ids.keyChain}`, patch(`/key-chain/${ids.keyChain}`)),
    editable('a certificate', `/certs/${ids.keyChain}`, patch(`/certs/${ids.keyChain}`)),
    editable(
      'the issuance configuration',
      '/issuer/config',
      post('/issuer/config', (n) => ({ display: [{ name: `Issuer ${n}`, locale: 'en' }] })),
    ),
    editable(
      'a credential configuration',
      credential,
      patch(credential),
      post('/issuer/credentials', (n) => ({ ...credentialBody(ids.credential, ids.keyChain), ...description(n) })),
    ),
    editable(
      'a presentation configuration',
      presentation,
      patch(presentation, (n) => ({ lifeTime: 600 + n })),
      post('/verifier/config', (n) => ({ ...presentationBody(ids.presentation, ids.keyChain), lifeTime: 900 + n })),
    ),
    editable(
      'the registrar configuration',
      '/registrar/config',
      patch('/registrar/config', (n) => ({ registrationCertificateDefaults: { privacy_policy: `https://acme.example/${n}` } })),
      post('/registrar/config', (n) => ({
        ...registrar.login(),
        registrationCertificateDefaults: { support_uri: `https://acme.example/${n}` },
      })),
    ),
    editable('a trust list', list, patch(list), { ...{ method: 'PUT', path: list }, json: (n) => ({ entities: [], ...description(n) }) }),
    editable(
      'a status list',
      statusList,
      patch(statusList, (n) => ({ credentialConfigurationId: n % 2 === 1 ? ids.credential : null })),
    ),
    editable('the settings of sessions', '/session-config', { ...settings, path: '/session-config' }),
    editable('the settings of status lists', '/status-list-config', {
      ...{ method: 'PUT', path: '/status-list-config' },
      json: (n) => ({ ttl: 900 + n }),
    }),
    editable(
      'the secret of webhooks',
      '/webhook-secret',
      patch('/webhook-secret', (n) => ({ signing: n % 2 === 1 ? 'off' : 'v1' })),
      post('/webhook-secret/rotate', () => ({})),
    ),
  ];
}

/** Sends one of the writes of an edit. */
export function makeWriter({ service, token }: Pick<PopulatedTenant, 'service' | 'token'>, root: string, edit: Edit) {
  const bearer = edit.needsServiceRole ? root : token;
  const read = async () => {
    const answer = await service.call('GET', edit.read, { token: bearer });
    expect(answer.status, `${edit.read}: ${answer.text}`).to.equal(200);
    return answer;
  };
  const write = (index: number, n: number, ifMatch?: string) => {
    const { method, path, json } = edit.writes[index % edit.writes.length] as Edit['writes'][number];
    const headers = ifMatch === undefined ? {} : { 'If-Match': ifMatch };
    return service.call(method, path, { token: bearer, json: json(n), headers });
  };
  const tagOf = async () => (await read()).headers.get('etag') ?? '';
  return { read, write, tagOf };
}
