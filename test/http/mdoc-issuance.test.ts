import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { parseCoseKey } from '../../domain/formats/cose/key.ts';
import { sigStructure } from '../../domain/formats/cose/sign1.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { assertDocumentSigner, MDL_DOCUMENT_SIGNER, parseDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { assertValidity } from '../../domain/formats/mdoc/mso.ts';
import { Backend } from '../support/backend.ts';
import { readIssuerSigned } from '../support/mdoc-maker.ts';
import { offerBody } from '../support/populated.ts';
import { issue } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const ELEMENTS = {
  family_name: 'Nygård',
  given_name: 'Ada',
  birth_date: '1984-01-26',
  issue_date: '2026-01-02',
  expiry_date: '2036-01-01',
  issuing_country: 'DE',
  issuing_authority: 'Ministry',
  document_number: 'D-1',
  portrait: '_9j_4A',
  driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2026-01-02' }],
  un_distinguishing_sign: 'D',
};
const CONFIG = { format: 'mso_mdoc', docType: DOC_TYPE, display: [{ name: 'Licence', locale: 'en' }] };
const LICENCE = {
  id: 'mdl',
  config: { ...CONFIG, claimsByNamespace: { [NAMESPACE]: ELEMENTS } },
  statusManagement: true,
  lifeTime: 30 * 86_400,
};

describe('Issuing mdocs through HTTP', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    await write(LICENCE);
    await write({ id: 'flat', config: CONFIG, schema: { type: 'object', required: ['family_name'] } });
    await write({ id: 'hooked', config: CONFIG, claimsWebhook: { url: `${backend.url}/claims` } });
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], batchSize: 3 });
  });
  after(async () => {
    await service.close();
    await backend.close();
  });

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  async function write(json: object) {
    const answer = await call('POST', '/issuer/credentials', json);
    expect(answer.status, answer.text).to.equal(201);
  }
  const inline = (id: string, claims: object) => ({ credentialClaims: { [id]: { type: 'inline', claims } } });
  const elementsOf = async (id: string, offer: object = {}) =>
    readIssuerSigned((await issue(service, tenant, id, offer)).text, DOC_TYPE).elements;

  it('returns a credential that a reader of driving licences accepts', async () => {
    const held = await issue(service, tenant, 'mdl');
    const { parsed: opened, mso, elements, chain } = readIssuerSigned(held.text, DOC_TYPE);
    expect(elements).to.deep.equal({ [NAMESPACE]: ELEMENTS });
    expect([mso.docType, mso.hashName]).to.deep.equal([DOC_TYPE, 'sha256']);
    expect(parseCoseKey(mso.deviceKey)).to.deep.equal(held.holder.jwk);

    const { protectedBytes, payload = Buffer.alloc(0), signature } = opened.issuerAuth;
    const anchors = await rootsOf('signing');
    const verdict = new NodeCertificates().verifyChain(chain, anchors, new Date(), { purpose: 'mdoc', haip: true });
    if (!verdict.trusted) throw new Error(verdict.detail);
    const verified = new NodeSignatures().verify(verdict.key, sigStructure(protectedBytes, payload), signature);
    expect(verified, 'the signature').to.equal(true);
    const signer = parseDocumentSigner(chain[0] ?? '');
    assertDocumentSigner(signer, MDL_DOCUMENT_SIGNER);
    assertValidity(mso.validity, signer, new Date());
    for (const time of [mso.validity.signed, mso.validity.validFrom, mso.validity.validUntil]) {
      expect(time.getTime() % 3_600_000).to.equal(0);
    }
  });

  /** Every certificate of the tenant's key chains of a usage; only authorities can be the end of a path. */
  async function rootsOf(usage: string) {
    const chains = (await call('GET', '/key-chain')).body as { usages: string[] }[];
    const text = JSON.stringify(chains.filter(({ usages }) => usages.includes(usage)));
    const pems = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/g) ?? [];
    const certificates = pems.flatMap((pem) => parsePemCertificates(pem.replaceAll('\\n', '\n')) ?? []);
    return certificates.map((certificate) => ({ certificate }));
  }

  // issuance N143
  it('adds a status list entry and creates different copies in a batch', async () => {
    const offer = await call('POST', '/issuer/offer', offerBody('mdl'));
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(offer.body.uri);
    const nonce = await wallet.nonce();
    const proofs = { jwt: [1, 2, 3].map(() => keyProof(newKey(), wallet.issuer, nonce)) };
    const answer = await wallet.request(token, 'mdl', { body: { credential_configuration_id: 'mdl', proofs } });
    expect(answer.status, answer.text).to.equal(200);
    const credentials = answer.body.credentials as { credential: string }[];
    const read = credentials.map(({ credential }) => readIssuerSigned(credential, DOC_TYPE));
    const statuses = read.map(({ mso }) => (mso.status as Map<string, Map<string, unknown>>).get('status_list'));
    expect(new Set(statuses.map((status) => status?.get('idx'))).size).to.equal(3);
    const [uri] = new Set(statuses.map((status) => String(status?.get('uri'))));
    expect((await service.call('GET', uri ?? '')).status).to.equal(200);
    const items = read.flatMap(({ parsed: opened }) => (opened.items.get(NAMESPACE) ?? []).map(({ encoded: whole }) => whole.toString('hex'))); // biome-ignore format: one statement
    expect(new Set(items).size).to.equal(3 * Object.keys(ELEMENTS).length);
    expect(new Set(read.map(({ mso }) => JSON.stringify(mso.validity))).size).to.equal(1);
  });

  it('accepts claims from one source, flat or by namespace', async () => {
    const ada = { family_name: 'Lovelace' };
    expect(await elementsOf('mdl', inline('mdl', ada))).to.deep.equal({ [NAMESPACE]: ada });
    expect(await elementsOf('mdl', inline('mdl', { [NAMESPACE]: ada }))).to.deep.equal({ [NAMESPACE]: ada });
    expect(await elementsOf('flat', inline('flat', ada))).to.deep.equal({ [NAMESPACE]: ada });
    backend.on('/claims', { json: { hooked: { [NAMESPACE]: { ...ada, birth_date: '1815-12-10' } } } });
    expect(await elementsOf('hooked')).to.deep.equal({ [NAMESPACE]: { ...ada, birth_date: '1815-12-10' } });
  });

  it('allows elements of any name from each source, including names reserved in SD-JWT VC', async () => {
    const elements = { family_name: 'Lovelace', status: 'resident', exp: 'none', iat: 7 };
    const expected = { [NAMESPACE]: elements };
    expect(await elementsOf('flat', inline('flat', elements))).to.deep.equal(expected);
    expect(await elementsOf('mdl', inline('mdl', { [NAMESPACE]: elements }))).to.deep.equal(expected);
    backend.on('/claims', { json: { hooked: elements } });
    expect(await elementsOf('hooked')).to.deep.equal(expected);
    backend.on('/claims', { json: { deferred: true } });
    const offer = await call('POST', '/issuer/offer', offerBody('hooked'));
    const wallet = new RawWallet(service, tenant.id);
    const answer = await wallet.request(await wallet.accessToken(offer.body.uri), 'hooked');
    const path = `/issuer/deferred/${answer.body.transaction_id}/complete`;
    const completed = await call('POST', path, { claims: elements });
    expect([completed.status, completed.body.status], completed.text).to.deep.equal([200, 'ready']);
  });

  const refused: [string, object, string][] = [
    ['an invalid date', { family_name: 'x', birth_date: '30.02.1984' }, '.birth_date'],
    ['elements outside a namespace', { family_name: 'x', [NAMESPACE]: { sex: 1 } }, '.family_name'],
    ['an unknown namespace', { family_name: 'x', 'org.example.1': { sex: 1 } }, '.org.example.1'],
    ['claims against the schema', { given_name: 'x' }, ''],
  ];
  for (const [what, claims, path] of refused) {
    it(`rejects an offer with ${what} in the answer to the backend`, async () => {
      const answer = await call('POST', '/issuer/offer', { ...offerBody('flat'), ...inline('flat', claims) });
      expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
      expect(answer.body.errors[0].path).to.equal(`credentialClaims.flat.claims${path}`);
    });
  }

  it('fails the session when a backend answers with values that no mdoc can contain', async () => {
    backend.on('/claims', { json: { hooked: { birth_date: 'yesterday' } } });
    const offer = await call('POST', '/issuer/offer', offerBody('hooked'));
    const wallet = new RawWallet(service, tenant.id);
    const answer = await wallet.request(await wallet.accessToken(offer.body.uri), 'hooked');
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'credential_request_denied']);
    const session = (await call('GET', `/session/${offer.body.session}`)).body;
    expect([session.status, session.failure.code]).to.deep.equal(['failed', 'claims_unavailable']);
    expect(session.failure.message)
      .to.match(/birth_date/)
      .and.not.include('yesterday');
  });

  it('rejects a licence of another country than its signer, already in the offer', async () => {
    const chain = { id: 'ministry', usages: ['signing'], country: 'FR', subjectName: 'Ministry' };
    const made = await call('POST', '/key-chain', chain);
    expect(made.status, made.text).to.equal(201);
    await write({ ...LICENCE, id: 'abroad', keyChainId: 'ministry' });
    await write({ id: 'asked', config: CONFIG, keyChainId: 'ministry', claimsWebhook: { url: `${backend.url}/claims` } });
    const own = await call('POST', '/issuer/offer', offerBody('abroad'));
    expect([own.status, own.body.errors?.[0].path]).to.deep.equal([400, 'credentialConfigurationIds.0']);
    expect(own.text).to.include('issuing_country differs from the country of the signer, FR').and.not.include('"DE"');
    const given = await call('POST', '/issuer/offer', { ...offerBody('abroad'), ...inline('abroad', ELEMENTS) });
    expect([given.status, given.body.errors?.[0].path]).to.deep.equal([400, 'credentialClaims.abroad.claims']);

    backend.on('/claims', { json: { asked: ELEMENTS } });
    const offer = await call('POST', '/issuer/offer', offerBody('asked'));
    const wallet = new RawWallet(service, tenant.id);
    const answer = await wallet.request(await wallet.accessToken(offer.body.uri), 'asked');
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'credential_request_denied']);
    const session = (await call('GET', `/session/${offer.body.session}`)).body;
    expect(session.failure.message).to.include('the key chain "ministry" cannot sign this licence');
    expect(await elementsOf('abroad', inline('abroad', { ...ELEMENTS, issuing_country: 'FR' }))).to.deep.include({
      [NAMESPACE]: { ...ELEMENTS, issuing_country: 'FR' },
    });
  });

  it('describes the credentials in the terms of mdocs', async () => {
    const metadata = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
    expect(metadata.body.credential_configurations_supported.mdl).to.deep.include({
      format: 'mso_mdoc',
      doctype: DOC_TYPE,
      credential_signing_alg_values_supported: [-7, -9],
      cryptographic_binding_methods_supported: ['cose_key'],
    });
    expect((await service.call('GET', '/acme/vct/mdl')).status).to.equal(404);
  });
});
