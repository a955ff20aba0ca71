import { expect } from 'chai';
import { CompactEncrypt, importJWK } from 'jose';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { deviceResponse, type HeldMdoc } from '../support/device.ts';
import { issue } from '../support/present.ts';
import { fetchRequest, type PresentationRequest } from '../support/presenter.ts';
import { newKey } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const ELEMENTS = {
  family_name: 'Nygård',
  birth_date: '1984-01-26',
  age_over_18: true,
  portrait: '_9j_4A',
};
const QUERY = {
  credentials: [
    {
      id: 'licence',
      format: 'mso_mdoc',
      meta: { doctype_value: DOC_TYPE },
      claims: [{ path: [NAMESPACE, 'family_name'] }, { path: [NAMESPACE, 'age_over_18'], values: [true] }],
    },
  ],
};

describe('verifying mdocs through HTTP', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let held: HeldMdoc;
  let issuedIn: string;

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme', { statusListConfig: { immediateUpdate: true } });
    const config = {
      format: 'mso_mdoc',
      docType: DOC_TYPE,
      display: [{ name: 'Licence', locale: 'en' }],
      claimsByNamespace: { [NAMESPACE]: ELEMENTS },
    };
    await write('/issuer/credentials', { id: 'mdl', config, statusManagement: true });
    await write('/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const trusted = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'signing' }], values: 'requested' };
    await write('/verifier/config', { id: 'plain', responseMode: 'direct_post', ...trusted });
    await write('/verifier/config', { id: 'encrypted', ...trusted });
    await write('/key-chain', { id: 'others', usageType: 'signing' });
    const others = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'others' }] };
    await write('/verifier/config', { id: 'others', responseMode: 'direct_post', ...others });
    ({ held, issuedIn } = await hold());
  });
  after(() => service.close());

  async function write(path: string, json: object) {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.equal(201);
  }
  async function hold() {
    const { text, holder, session } = await issue(service, tenant, 'mdl');
    return { held: { text, holder, docType: DOC_TYPE }, issuedIn: session };
  }
  const ask = async (requestId: string) => {
    const json = { response_type: 'uri', requestId };
    const made = await service.call('POST', '/verifier/offer', { token: tenant.token, json });
    expect(made.status, made.text).to.equal(201);
    const request = await fetchRequest(service, made.body.uri);
    return { request, session: made.body.session as string };
  };
  const transcriptOf = (request: PresentationRequest, change: object = {}) => {
    const [key] = request.client_metadata.jwks?.keys ?? [];
    const { client_id: clientId, nonce, response_uri: responseUri } = request;
    const encryptionKey = key as unknown as PublicJwk | undefined;
    return redirectTranscript({ clientId, nonce, responseUri, encryptionKey, ...change });
  };
  const send = async (request: PresentationRequest, text: string) => {
    const vp_token = { licence: [text] };
    const [key] = request.client_metadata.jwks?.keys ?? [];
    const form =
      key === undefined
        ? { vp_token: JSON.stringify(vp_token), state: request.state }
        : {
            response: await new CompactEncrypt(
              Buffer.from(JSON.stringify({ vp_token, state: request.state })),
            )
              .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
              .encrypt(await importJWK(key, 'ECDH-ES')),
          };
    return service.call('POST', request.response_uri, { form });
  };
  // biome-ignore lint/suspicious/noExplicitAny: sessions as they are shown
  const session = async (id: string): Promise<any> =>
    (await service.call('GET', `/session/${id}`, { token: tenant.token })).body;

  for (const mode of ['plain', 'encrypted']) {
    it(`gives the backend the elements that were asked for, ${mode}`, async () => {
      const { request, session: id } = await ask(mode);
      const answer = await send(request, deviceResponse(held, transcriptOf(request)));
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await session(id);
      expect(status).to.equal('completed');
      expect(credentials).to.have.length(1);
      expect(credentials[0].id).to.equal('licence');
      expect(credentials[0].values).to.deep.equal({
        [NAMESPACE]: { family_name: 'Nygård', age_over_18: true },
      });
    });
  }

  it('says in the request which algorithms it takes', async () => {
    const { request } = await ask('plain');
    const formats = (request.client_metadata as unknown as { vp_formats_supported: Record<string, object> })
      .vp_formats_supported;
    expect(formats['mso_mdoc']).to.deep.include({
      issuerauth_alg_values: [-7, -9, -35, -51, -36, -52, -8, -19],
    });
    expect(formats['mso_mdoc']).to.have.property('deviceauth_alg_values');
  });

  const refusals: readonly [string, string, (request: PresentationRequest) => string][] = [
    [
      'for another nonce',
      'plain',
      (request) => deviceResponse(held, transcriptOf(request, { nonce: 'other' })),
    ],
    [
      'for another verifier',
      'plain',
      (request) => deviceResponse(held, transcriptOf(request, { clientId: 'x509_hash:other' })),
    ],
    [
      'for another address',
      'plain',
      (request) => deviceResponse(held, transcriptOf(request, { responseUri: 'https://evil.example' })),
    ],
    [
      'for another encryption key',
      'encrypted',
      (request) => deviceResponse(held, transcriptOf(request, { encryptionKey: newKey().jwk })),
    ],
    [
      'by another device',
      'plain',
      (request) => deviceResponse({ ...held, holder: newKey() }, transcriptOf(request)),
    ],
    [
      'without an element that was asked for',
      'plain',
      (request) => deviceResponse(held, transcriptOf(request), ['family_name']),
    ],
    ['of an issuer that is not trusted', 'others', (request) => deviceResponse(held, transcriptOf(request))],
    ['that is none', 'plain', () => 'AAAA'],
  ];
  for (const [what, id, make] of refusals) {
    it(`refuses one ${what}`, async () => {
      const { request, session: sessionId } = await ask(id);
      await send(request, make(request));
      const { status, credentials } = await session(sessionId);
      expect(status).to.equal('failed');
      expect(JSON.stringify(credentials ?? [])).to.not.include('Nygård');
    });
  }

  it('refuses one that was revoked', async () => {
    const other = await hold();
    const revoked = { sessionId: other.issuedIn, status: 1 };
    expect(
      (await service.call('POST', '/session/revoke', { token: tenant.token, json: revoked })).status,
    ).to.equal(201);
    const { request, session: id } = await ask('plain');
    await send(request, deviceResponse(other.held, transcriptOf(request)));
    expect((await session(id)).status).to.equal('failed');
    expect(issuedIn).to.not.equal(other.issuedIn);
  });

  it('gives the request to wallets that know the format, and to no others', async () => {
    const json = { response_type: 'uri', requestId: 'plain' };
    const made = await service.call('POST', '/verifier/offer', { token: tenant.token, json });
    const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
    const post = (formats: object) =>
      service.call('POST', url, {
        form: { wallet_metadata: JSON.stringify({ vp_formats_supported: formats }) },
      });
    expect((await post({ 'dc+sd-jwt': {} })).status).to.equal(400);
    expect((await session(made.body.session)).status).to.equal('active');
    expect((await post({ mso_mdoc: {} })).status).to.equal(200);
  });
});
