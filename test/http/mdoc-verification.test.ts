import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, importJWK } from 'jose';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { Cbor } from '../../domain/formats/cbor/values.ts';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { type DeviceMdoc, deviceResponse } from '../support/device.ts';
import { withoutIssuers } from '../support/failures.ts';
import { type MdocOverrides, presentMdoc } from '../support/mdoc-maker.ts';
import { type FetchedRequest, fetchRequest, issue, type PresentationRequest, responseForm, Shop } from '../support/present.ts';
import { newKey, now } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ELEMENTS = { family_name: 'Nygård', birth_date: '1984-01-26', age_over_18: true, portrait: '_9j_4A' };

describe('Verifying mdocs through HTTP', () => {
  const DOC_TYPE = 'org.iso.18013.5.1.mDL';
  const NAMESPACE = 'org.iso.18013.5.1';
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

  let service: TestService;
  let tenant: { id: string; token: string };
  let heldMdoc: DeviceMdoc;
  let issuingCountry: string;

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
    const trustedConfiguration = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'signing' }], values: 'requested' };
    await write('/verifier/config', { id: 'plain', responseMode: 'direct_post', ...trustedConfiguration });
    await write('/verifier/config', { id: 'encrypted', ...trustedConfiguration });
    await write('/key-chain', { id: 'others', usageType: 'signing' });
    const otherConfiguration = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'others' }] };
    await write('/verifier/config', { id: 'others', responseMode: 'direct_post', ...otherConfiguration });
    ({ held: heldMdoc, issuedIn: issuingCountry } = await issueMdoc());
  });
  after(() => service.close());

  async function write(path: string, json: object) {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.equal(201);
  }
  async function issueMdoc() {
    const { text, holder, session } = await issue(service, tenant, 'mdl');
    return { held: { text, holder, docType: DOC_TYPE }, issuedIn: session };
  }
  const createRequest = async (requestId: string) => {
    const json = { response_type: 'uri', requestId };
    const creation = await service.call('POST', '/verifier/offer', { token: tenant.token, json });
    expect(creation.status, creation.text).to.equal(201);
    const request = await fetchRequest(service, creation.body.uri);
    return { request, session: creation.body.session as string };
  };
  const createTranscript = (request: PresentationRequest, change: object = {}) => {
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
            response: await new CompactEncrypt(Buffer.from(JSON.stringify({ vp_token, state: request.state })))
              .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
              .encrypt(await importJWK(key, 'ECDH-ES')),
          };
    return service.call('POST', request.response_uri, { form });
  };
  // biome-ignore lint/suspicious/noExplicitAny: sessions as they are shown
  const session = async (id: string): Promise<any> => (await service.call('GET', `/session/${id}`, { token: tenant.token })).body;

  for (const mode of ['plain', 'encrypted']) {
    it(`returns the requested elements to the backend, ${mode}`, async () => {
      const { request, session: id } = await createRequest(mode);
      const answer = await send(request, deviceResponse(heldMdoc, createTranscript(request)));
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await session(id);
      expect(status).to.equal('completed');
      expect(credentials).to.have.length(1);
      expect(credentials[0].id).to.equal('licence');
      expect(credentials[0].values).to.deep.equal({ [NAMESPACE]: { family_name: 'Nygård', age_over_18: true } });
    });
  }

  it('names the accepted algorithms in the request', async () => {
    const { request } = await createRequest('plain');
    const formats = (request.client_metadata as unknown as { vp_formats_supported: Record<string, object> }).vp_formats_supported;
    expect(formats['mso_mdoc']).to.deep.include({ issuerauth_alg_values: [-7, -9, -35, -51, -36, -52, -8, -19] });
    expect(formats['mso_mdoc']).to.have.property('deviceauth_alg_values');
  });

  const rejectedPresentations: readonly [string, string, (request: PresentationRequest) => string][] = [
    ['for another nonce', 'plain', (request) => deviceResponse(heldMdoc, createTranscript(request, { nonce: 'other' }))],
    ['for another verifier', 'plain', (request) => deviceResponse(heldMdoc, createTranscript(request, { clientId: 'x509_hash:other' }))],
    [
      'for another address',
      'plain',
      (request) => deviceResponse(heldMdoc, createTranscript(request, { responseUri: 'https://evil.example' })),
    ],
    [
      'for another encryption key',
      'encrypted',
      (request) => deviceResponse(heldMdoc, createTranscript(request, { encryptionKey: newKey().jwk })),
    ],
    ['by another device', 'plain', (request) => deviceResponse({ ...heldMdoc, holder: newKey() }, createTranscript(request))],
    ['without an element that was requested', 'plain', (request) => deviceResponse(heldMdoc, createTranscript(request), ['family_name'])],
    ['of an issuer that is not trusted', 'others', (request) => deviceResponse(heldMdoc, createTranscript(request))],
    ['that is invalid', 'plain', () => 'AAAA'],
  ];
  for (const [description, id, make] of rejectedPresentations) {
    it(`rejects an mdoc ${description}`, async () => {
      const { request, session: sessionId } = await createRequest(id);
      await send(request, make(request));
      const { status, credentials } = await session(sessionId);
      expect(status).to.equal('failed');
      expect(JSON.stringify(credentials ?? [])).to.not.include('Nygård');
    });
  }

  it('rejects a revoked mdoc', async () => {
    const otherMdoc = await issueMdoc();
    const revoked = { sessionId: otherMdoc.issuedIn, status: 1 };
    expect((await service.call('POST', '/session/revoke', { token: tenant.token, json: revoked })).status).to.equal(201);
    const { request, session: id } = await createRequest('plain');
    await send(request, deviceResponse(otherMdoc.held, createTranscript(request)));
    expect((await session(id)).status).to.equal('failed');
    expect(issuingCountry).to.not.equal(otherMdoc.issuedIn);
  });

  it('serves the request only to wallets that support the format', async () => {
    const json = { response_type: 'uri', requestId: 'plain' };
    const response = await service.call('POST', '/verifier/offer', { token: tenant.token, json });
    const url = new URL(response.body.uri).searchParams.get('request_uri') ?? '';
    const postFormats = (formats: object) =>
      service.call('POST', url, { form: { wallet_metadata: JSON.stringify({ vp_formats_supported: formats }) } });
    expect((await postFormats({ 'dc+sd-jwt': {} })).status).to.equal(400);
    expect((await session(response.body.session)).status).to.equal('active');
    expect((await postFormats({ mso_mdoc: {} })).status).to.equal(200);
  });
});

const TYPE = 'urn:example:payment';
const ELEMENT = 'transaction_data_hash';
const PAYMENT = { type: TYPE, credential_ids: ['account'], amount: '12.00' };

/** Uses SHA-256 by default. */
const hashOf = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text, 'ascii').digest();

describe('Transaction data that an mdoc confirms', () => {
  const DOC_TYPE = 'org.example.account.1';
  const NAMESPACE = 'org.example.account';
  const account = (id: string) => ({ id, format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims: [{ path: [NAMESPACE, 'iban'] }] });

  let shop: Shop;
  let signer: CertifiedKey;
  let root: CertifiedKey;
  const holder = newKey();
  let base: object;

  before(async () => {
    shop = await Shop.open();
    root = await certify({ name: 'Accounts CA', ca: true });
    signer = await certify({ name: 'Accounts', by: root });
    base = {
      dcql_query: { credentials: [account('account')] },
      trustAnchors: [{ certificate: pem(root) }],
      transaction_data: [PAYMENT],
      transactionDataElements: { [TYPE]: { namespace: NAMESPACE, element: ELEMENT } },
      responseMode: 'direct_post',
    };
    await shop.configure({ ...base, id: 'payment' });
  });
  after(() => shop.close());

  /** The issuer allows the device to sign the element, and the device signs `value` in it. */
  function presentWith(request: FetchedRequest, value: Cbor | undefined, changes: MdocOverrides = {}): string {
    const { client_id: clientId, response_uri: responseUri, nonce } = request.payload;
    const transcript = redirectTranscript({ clientId, responseUri, nonce, encryptionKey: undefined });
    const authorizations = { dataElements: new Map([[NAMESPACE, [ELEMENT]]]) };
    return presentMdoc(
      {
        issuer: { key: signer, chain: [signer.certificate] },
        holder,
        docType: DOC_TYPE,
        elements: { [NAMESPACE]: { iban: 'DE02120300000000202051' } },
        transcript,
        now: now(),
      },
      {
        mso: (mso) => {
          const info = mso.get('deviceKeyInfo') as Record<string, Cbor>;
          mso.set('deviceKeyInfo', { ...info, keyAuthorizations: authorizations });
        },
        ...(value !== undefined && { deviceNameSpaces: new Map([[NAMESPACE, new Map([[ELEMENT, value]])]]) }),
        ...changes,
      },
    );
  }
  const answer = async (request: FetchedRequest, presentations: Record<string, string>) => {
    const vpToken = Object.fromEntries(Object.entries(presentations).map(([id, text]) => [id, [text]]));
    const { status } = await shop.postResponse(request, await responseForm(request, vpToken));
    const { failure, credentials } = await shop.session(request.session);
    return { status, failure: failure?.message as string | undefined, credentials };
  };
  const entryOf = (request: FetchedRequest, index = 0): string => request.payload['transaction_data'][index];

  it('is accepted by its hash, which is not returned as a claim', async () => {
    const request = await shop.requestPresentation('payment');
    const { status, credentials } = await answer(request, { account: presentWith(request, hashOf(entryOf(request))) });
    expect(status).to.equal(200);
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'account', values: { [NAMESPACE]: { iban: 'DE02120300000000202051' } } }]);
  });
  it('is accepted as one of several hashes, in any order', async () => {
    const entries = [PAYMENT, { ...PAYMENT, amount: '7.00' }];
    const request = await shop.requestPresentation('payment', { transaction_data: entries });
    const hashes = [hashOf(entryOf(request, 1)), hashOf(entryOf(request, 0))];
    expect((await answer(request, { account: presentWith(request, hashes) })).status).to.equal(200);
  });
  it('is accepted by another hash algorithm when the entry requests it', async () => {
    const entry = { ...PAYMENT, transaction_data_hashes_alg: ['sha-512'] };
    const request = await shop.requestPresentation('payment', { transaction_data: [entry] });
    const requestWithSha512 = await shop.requestPresentation('payment', { transaction_data: [entry] });
    const value = hashOf(entryOf(request), 'sha512');
    expect((await answer(request, { account: presentWith(request, value) })).status).to.equal(200);
    expect(
      (await answer(requestWithSha512, { account: presentWith(requestWithSha512, hashOf(entryOf(requestWithSha512))) })).failure,
    ).to.match(/transaction_data_mismatch/);
  });
  it('is confirmed by one of the credentials that an entry names', async () => {
    const query = { credentials: [account('account'), account('savings')] };
    const transaction_data = [{ ...PAYMENT, credential_ids: ['account', 'savings'] }];
    await shop.configure({ ...base, id: 'either', dcql_query: query, transaction_data });
    const request = await shop.requestPresentation('either');
    const withHash = presentWith(request, hashOf(entryOf(request)));
    const withoutHash = presentWith(request, undefined);
    expect((await answer(request, { account: withoutHash, savings: withHash })).status).to.equal(200);
    const unconfirmedRequest = await shop.requestPresentation('either');
    const both = { account: presentWith(unconfirmedRequest, undefined), savings: presentWith(unconfirmedRequest, undefined) };
    expect((await answer(unconfirmedRequest, both)).failure).to.match(/transaction_data_missing/);
  });

  const rejectedConfirmations: readonly [string, (request: FetchedRequest) => string | Promise<string>, RegExp][] = [
    // N127
    ['without a hash', (request) => presentWith(request, undefined), /transaction_data_missing/],
    [
      // N128
      'with the hash of the decoded entry',
      (request) => presentWith(request, hashOf(Buffer.from(entryOf(request), 'base64url').toString())),
      /transaction_data_mismatch/,
    ],
    [
      // N129
      'with the hash of an entry of another request',
      async (request) =>
        presentWith(
          request,
          hashOf(entryOf(await shop.requestPresentation('payment', { transaction_data: [{ ...PAYMENT, amount: '1200.00' }] }))),
        ),
      /transaction_data_mismatch/,
    ],
    // N131
    [
      'with an additional hash',
      (request) => presentWith(request, [hashOf(entryOf(request)), hashOf('another')]),
      /transaction_data_mismatch/,
    ],
    ['with a number', (request) => presentWith(request, 7), /transaction_data_mismatch/],
    ['with an empty list', (request) => presentWith(request, []), /transaction_data_mismatch/],
    [
      // N124
      'in an element that the issuer did not allow the device to sign',
      (request) => presentWith(request, hashOf(entryOf(request)), { mso: () => {} }),
      /key_authorization/,
    ],
    [
      'in another element',
      (request) =>
        presentWith(request, undefined, {
          mso: (mso) => {
            const info = mso.get('deviceKeyInfo') as Record<string, Cbor>;
            mso.set('deviceKeyInfo', { ...info, keyAuthorizations: { nameSpaces: [NAMESPACE] } });
          },
          deviceNameSpaces: new Map([[NAMESPACE, new Map([['other', hashOf(entryOf(request))]])]]),
        }),
      /transaction_data_missing/,
    ],
    [
      'that the issuer signed and the device did not',
      (request) =>
        presentMdoc({
          issuer: { key: signer, chain: [signer.certificate] },
          holder,
          docType: DOC_TYPE,
          elements: { [NAMESPACE]: { iban: 'DE02', [ELEMENT]: hashOf(entryOf(request)) } },
          transcript: redirectTranscript({
            clientId: request.payload['client_id'],
            responseUri: request.payload['response_uri'],
            nonce: request.payload['nonce'],
            encryptionKey: undefined,
          }),
          now: now(),
        }),
      /transaction_data_missing/,
    ],
    [
      'changed after the device signed',
      (request) =>
        presentWith(request, hashOf('nothing'), {
          document: (document) => {
            const nameSpaces = embed(encodeCbor(new Map([[NAMESPACE, new Map([[ELEMENT, hashOf(entryOf(request))]])]])));
            return { ...document, deviceSigned: { ...(document['deviceSigned'] as object), nameSpaces } };
          },
        }),
      /device_signature/,
    ],
  ];
  for (const [name, make, reason] of rejectedConfirmations) {
    it(`is rejected ${name}`, async () => {
      const request = await shop.requestPresentation('payment');
      const { status, failure, credentials } = await answer(request, { account: await make(request) });
      expect([status, credentials]).to.deep.equal([400, undefined]);
      expect(failure).to.match(reason);
    });
  }

  // N15
  it('requires an element that the configuration names for the type', async () => {
    for (const transactionDataElements of [undefined, null, { 'urn:other': { namespace: 'a', element: 'b' } }]) {
      const json = { ...base, id: 'bad', transactionDataElements };
      const answer = await shop.call('POST', '/verifier/config', json);
      expect(answer.status).to.equal(400);
      expect(answer.body.errors[0].path).to.equal('transaction_data.0.credential_ids.0');
      expect(answer.body.detail).to.match(/transactionDataElements/);
    }
    const otherEntry = { ...PAYMENT, type: 'urn:other' };
    const json = { response_type: 'uri', requestId: 'payment', transaction_data: [otherEntry] };
    const rejection = await shop.call('POST', '/verifier/offer', json);
    expect([rejection.status, rejection.body.errors[0].path]).to.deep.equal([400, 'transaction_data.0.credential_ids.0']);
  });

  it('is checked in the report, between the device and the query', async () => {
    const request = await shop.requestPresentation('payment');
    await answer(request, { account: presentWith(request, hashOf(entryOf(request))) });
    const { report } = await shop.session(request.session);
    expect(report.map(({ check }: { check: string }) => check)).to.deep.equal([
      ...['form', 'issuer header', 'issuer signature', 'issuer trust', 'validity period', 'elements'],
      ...['device signature', 'transaction data', 'query', 'status'],
    ]);
    const trust = report.find(({ check }: { check: string }) => check === 'issuer trust');
    expect(trust.input).to.match(/^CN=Accounts under the anchor \S+ \(configured\)$/);
    expect(JSON.stringify(report)).to.not.include('DE02');
  });
});
