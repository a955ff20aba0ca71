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
  let held: DeviceMdoc;
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
      const { request, session: id } = await ask(mode);
      const answer = await send(request, deviceResponse(held, transcriptOf(request)));
      expect(answer.status, answer.text).to.equal(200);
      const { status, credentials } = await session(id);
      expect(status).to.equal('completed');
      expect(credentials).to.have.length(1);
      expect(credentials[0].id).to.equal('licence');
      expect(credentials[0].values).to.deep.equal({ [NAMESPACE]: { family_name: 'Nygård', age_over_18: true } });
    });
  }

  it('names the accepted algorithms in the request', async () => {
    const { request } = await ask('plain');
    const formats = (request.client_metadata as unknown as { vp_formats_supported: Record<string, object> }).vp_formats_supported;
    expect(formats['mso_mdoc']).to.deep.include({ issuerauth_alg_values: [-7, -9, -35, -51, -36, -52, -8, -19] });
    expect(formats['mso_mdoc']).to.have.property('deviceauth_alg_values');
  });

  const refusals: readonly [string, string, (request: PresentationRequest) => string][] = [
    ['for another nonce', 'plain', (request) => deviceResponse(held, transcriptOf(request, { nonce: 'other' }))],
    ['for another verifier', 'plain', (request) => deviceResponse(held, transcriptOf(request, { clientId: 'x509_hash:other' }))],
    ['for another address', 'plain', (request) => deviceResponse(held, transcriptOf(request, { responseUri: 'https://evil.example' }))],
    ['for another encryption key', 'encrypted', (request) => deviceResponse(held, transcriptOf(request, { encryptionKey: newKey().jwk }))],
    ['by another device', 'plain', (request) => deviceResponse({ ...held, holder: newKey() }, transcriptOf(request))],
    ['without an element that was asked for', 'plain', (request) => deviceResponse(held, transcriptOf(request), ['family_name'])],
    ['of an issuer that is not trusted', 'others', (request) => deviceResponse(held, transcriptOf(request))],
    ['that is invalid', 'plain', () => 'AAAA'],
  ];
  for (const [what, id, make] of refusals) {
    it(`rejects an mdoc ${what}`, async () => {
      const { request, session: sessionId } = await ask(id);
      await send(request, make(request));
      const { status, credentials } = await session(sessionId);
      expect(status).to.equal('failed');
      expect(JSON.stringify(credentials ?? [])).to.not.include('Nygård');
    });
  }

  it('rejects a revoked mdoc', async () => {
    const other = await hold();
    const revoked = { sessionId: other.issuedIn, status: 1 };
    expect((await service.call('POST', '/session/revoke', { token: tenant.token, json: revoked })).status).to.equal(201);
    const { request, session: id } = await ask('plain');
    await send(request, deviceResponse(other.held, transcriptOf(request)));
    expect((await session(id)).status).to.equal('failed');
    expect(issuedIn).to.not.equal(other.issuedIn);
  });

  it('serves the request only to wallets that support the format', async () => {
    const json = { response_type: 'uri', requestId: 'plain' };
    const made = await service.call('POST', '/verifier/offer', { token: tenant.token, json });
    const url = new URL(made.body.uri).searchParams.get('request_uri') ?? '';
    const post = (formats: object) =>
      service.call('POST', url, { form: { wallet_metadata: JSON.stringify({ vp_formats_supported: formats }) } });
    expect((await post({ 'dc+sd-jwt': {} })).status).to.equal(400);
    expect((await session(made.body.session)).status).to.equal('active');
    expect((await post({ mso_mdoc: {} })).status).to.equal(200);
  });
});

const TYPE = 'urn:example:payment';
const ELEMENT = 'transaction_data_hash';
const PAYMENT = { type: TYPE, credential_ids: ['account'], amount: '12.00' };

/** SHA-256 unless stated. */
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

  /** The issuer lets the device sign the element, and the device signs `value` in it. */
  function show(asked: FetchedRequest, value: Cbor | undefined, bend: MdocOverrides = {}): string {
    const { client_id: clientId, response_uri: responseUri, nonce } = asked.payload;
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
        ...bend,
      },
    );
  }
  const answer = async (asked: FetchedRequest, presentations: Record<string, string>) => {
    const vpToken = Object.fromEntries(Object.entries(presentations).map(([id, text]) => [id, [text]]));
    const { status } = await shop.postResponse(asked, await responseForm(asked, vpToken));
    const { failure, credentials } = await shop.session(asked.session);
    return { status, failure: failure?.message as string | undefined, credentials };
  };
  const entryOf = (asked: FetchedRequest, index = 0): string => asked.payload['transaction_data'][index];

  it('is accepted by its hash, which is not returned as a claim', async () => {
    const asked = await shop.requestPresentation('payment');
    const { status, credentials } = await answer(asked, { account: show(asked, hashOf(entryOf(asked))) });
    expect(status).to.equal(200);
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'account', values: { [NAMESPACE]: { iban: 'DE02120300000000202051' } } }]);
  });
  it('is accepted as one of several hashes, in any order', async () => {
    const entries = [PAYMENT, { ...PAYMENT, amount: '7.00' }];
    const asked = await shop.requestPresentation('payment', { transaction_data: entries });
    const hashes = [hashOf(entryOf(asked, 1)), hashOf(entryOf(asked, 0))];
    expect((await answer(asked, { account: show(asked, hashes) })).status).to.equal(200);
  });
  it('is accepted by another hash algorithm when the entry asks for it', async () => {
    const entry = { ...PAYMENT, transaction_data_hashes_alg: ['sha-512'] };
    const asked = await shop.requestPresentation('payment', { transaction_data: [entry] });
    const short = await shop.requestPresentation('payment', { transaction_data: [entry] });
    const value = hashOf(entryOf(asked), 'sha512');
    expect((await answer(asked, { account: show(asked, value) })).status).to.equal(200);
    expect((await answer(short, { account: show(short, hashOf(entryOf(short))) })).failure).to.match(/transaction_data_mismatch/);
  });
  it('is confirmed by one of the credentials that an entry names', async () => {
    const query = { credentials: [account('account'), account('savings')] };
    const transaction_data = [{ ...PAYMENT, credential_ids: ['account', 'savings'] }];
    await shop.configure({ ...base, id: 'either', dcql_query: query, transaction_data });
    const asked = await shop.requestPresentation('either');
    const confirming = show(asked, hashOf(entryOf(asked)));
    const silent = show(asked, undefined);
    expect((await answer(asked, { account: silent, savings: confirming })).status).to.equal(200);
    const nobody = await shop.requestPresentation('either');
    const both = { account: show(nobody, undefined), savings: show(nobody, undefined) };
    expect((await answer(nobody, both)).failure).to.match(/transaction_data_missing/);
  });

  const bad: readonly [string, (asked: FetchedRequest) => string | Promise<string>, RegExp][] = [
    // N127
    ['without a hash', (asked) => show(asked, undefined), /transaction_data_missing/],
    [
      // N128
      'with the hash of the decoded entry',
      (asked) => show(asked, hashOf(Buffer.from(entryOf(asked), 'base64url').toString())),
      /transaction_data_mismatch/,
    ],
    [
      // N129
      'with the hash of an entry of another request',
      async (asked) =>
        show(asked, hashOf(entryOf(await shop.requestPresentation('payment', { transaction_data: [{ ...PAYMENT, amount: '1200.00' }] })))),
      /transaction_data_mismatch/,
    ],
    // N131
    ['with a hash too many', (asked) => show(asked, [hashOf(entryOf(asked)), hashOf('another')]), /transaction_data_mismatch/],
    ['with a number', (asked) => show(asked, 7), /transaction_data_mismatch/],
    ['with an empty list', (asked) => show(asked, []), /transaction_data_mismatch/],
    [
      // N124
      'in an element that the issuer did not let the device sign',
      (asked) => show(asked, hashOf(entryOf(asked)), { mso: () => {} }),
      /key_authorization/,
    ],
    [
      'in another element',
      (asked) =>
        show(asked, undefined, {
          mso: (mso) => {
            const info = mso.get('deviceKeyInfo') as Record<string, Cbor>;
            mso.set('deviceKeyInfo', { ...info, keyAuthorizations: { nameSpaces: [NAMESPACE] } });
          },
          deviceNameSpaces: new Map([[NAMESPACE, new Map([['other', hashOf(entryOf(asked))]])]]),
        }),
      /transaction_data_missing/,
    ],
    [
      'that the issuer signed and the device did not',
      (asked) =>
        presentMdoc({
          issuer: { key: signer, chain: [signer.certificate] },
          holder,
          docType: DOC_TYPE,
          elements: { [NAMESPACE]: { iban: 'DE02', [ELEMENT]: hashOf(entryOf(asked)) } },
          transcript: redirectTranscript({
            clientId: asked.payload['client_id'],
            responseUri: asked.payload['response_uri'],
            nonce: asked.payload['nonce'],
            encryptionKey: undefined,
          }),
          now: now(),
        }),
      /transaction_data_missing/,
    ],
    [
      'changed after the device signed',
      (asked) =>
        show(asked, hashOf('nothing'), {
          document: (document) => {
            const nameSpaces = embed(encodeCbor(new Map([[NAMESPACE, new Map([[ELEMENT, hashOf(entryOf(asked))]])]])));
            return { ...document, deviceSigned: { ...(document['deviceSigned'] as object), nameSpaces } };
          },
        }),
      /device_signature/,
    ],
  ];
  for (const [name, make, reason] of bad) {
    it(`is rejected ${name}`, async () => {
      const asked = await shop.requestPresentation('payment');
      const { status, failure, credentials } = await answer(asked, { account: await make(asked) });
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
    const other = { ...PAYMENT, type: 'urn:other' };
    const json = { response_type: 'uri', requestId: 'payment', transaction_data: [other] };
    const refused = await shop.call('POST', '/verifier/offer', json);
    expect([refused.status, refused.body.errors[0].path]).to.deep.equal([400, 'transaction_data.0.credential_ids.0']);
  });

  it('is checked in the report, between the device and the query', async () => {
    const asked = await shop.requestPresentation('payment');
    await answer(asked, { account: show(asked, hashOf(entryOf(asked))) });
    const { report } = await shop.session(asked.session);
    expect(report.map(({ check }: { check: string }) => check)).to.deep.equal([
      ...['form', 'issuer header', 'issuer signature', 'issuer trust', 'validity period', 'elements'],
      ...['device signature', 'transaction data', 'query', 'status'],
    ]);
    const trust = report.find(({ check }: { check: string }) => check === 'issuer trust');
    expect(trust.input).to.match(/^CN=Accounts under the anchor \S+ \(configured\)$/);
    expect(JSON.stringify(report)).to.not.include('DE02');
  });
});
