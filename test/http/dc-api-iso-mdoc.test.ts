import { expect } from 'chai';
import { MAX_UNDECRYPTED_ATTEMPTS } from '../../application/verification/response-intake.ts';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { dcApiTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { deviceResponse } from '../support/device.ts';
import { withoutIssuers } from '../support/failures.ts';
import { type IsoMdocData, parseRequestedDocuments, sealResponse, sessionTranscript } from '../support/iso-mdoc-wallet.ts';
import { bindToRequest, decode, encryptResponse, type HeldCredential, Shop } from '../support/present.ts';

const SHOP = 'https://shop.example';
const KIOSK = 'https://kiosk.example:8443';
const MDL = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const AGE = 'example.age';
const LICENCE = {
  id: 'licence',
  format: 'mso_mdoc',
  meta: { doctype_value: MDL },
  claims: [{ path: [NAMESPACE, 'family_name'], intent_to_retain: true }, { path: [NAMESPACE, 'given_name'] }],
};
const CARD = { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:card:1'] }, claims: [{ path: ['name'] }] };
const EITHER_CREDENTIAL = { credentials: [CARD, LICENCE], credential_sets: [{ options: [['card'], ['licence']] }] };
const AGE_QUERY = { id: 'age', format: 'mso_mdoc', meta: { doctype_value: AGE }, claims: [{ path: [AGE, 'over'] }] };
const BOTH = ['openid4vp', 'org-iso-mdoc'];

// biome-ignore lint/suspicious/noExplicitAny: members of requests
type JsonObject = Record<string, any>;
type OfPage = { readonly session: string; readonly uri: string; readonly requests: readonly JsonObject[] };

describe('presentation request by the protocol of ISO/IEC TS 18013-7 Annex C', () => {
  let shop: Shop;
  let licence: HeldCredential & { docType: string };
  let age: HeldCredential & { docType: string };
  let card: HeldCredential;

  before(async () => {
    shop = await Shop.open();
    const mdoc = async (id: string, docType: string, claimsByNamespace: object) => {
      const display = [{ name: id, locale: 'en' }];
      const config = { format: 'mso_mdoc', docType, display, claimsByNamespace };
      const creation = await shop.call('POST', '/issuer/credentials', { id, config }, shop.acme.token);
      expect(creation.status, creation.text).to.equal(201);
      return { ...(await shop.issue(id)), docType };
    };
    licence = await mdoc('mdl', MDL, { [NAMESPACE]: { family_name: 'Nygård', given_name: 'Ada', sex: 2 } });
    age = await mdoc('age', AGE, { [AGE]: { over: true } });
    card = await shop.issue();
    const expectedOrigins = [SHOP];
    const mdocOnly = { dcApiProtocols: ['org-iso-mdoc'] };
    await shop.configure({ id: 'both', expectedOrigins, dcql_query: EITHER_CREDENTIAL, dcApiProtocols: BOTH });
    const two = { credentials: [LICENCE, AGE_QUERY] };
    await shop.configure({ id: 'alone', expectedOrigins, dcql_query: two, ...mdocOnly });
    const unsignedRequest = { dcql_query: { credentials: [LICENCE] }, dcApiRequest: 'unsigned' };
    await shop.configure({ id: 'unsigned', expectedOrigins, ...unsignedRequest, ...mdocOnly });
    await shop.configure({ id: 'pages', ...unsignedRequest, ...mdocOnly, expectedOrigins: [SHOP, KIOSK] });
  });
  after(() => shop.close());

  async function createRequest(requestId: string, overrides: object = {}): Promise<OfPage> {
    const creation = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId, ...overrides });
    expect(creation.status, creation.text).to.equal(201);
    const fetchedRequest = await shop.service.call('GET', creation.body.uri);
    expect(fetchedRequest.body, 'the same request each time').to.deep.equal(creation.body.dcApi);
    return { session: creation.body.session, uri: creation.body.uri, requests: fetchedRequest.body.requests };
  }
  const isoRequestOf = ({ requests }: OfPage): IsoMdocData => requests.find(({ protocol }) => protocol === 'org-iso-mdoc')?.['data'];
  const send = (request: OfPage, json: object) => shop.service.call('POST', request.uri, { json });
  const presentDocument = (document: HeldCredential & { docType: string }, transcript: Buffer, names?: readonly string[]) =>
    decodeCbor(Buffer.from(deviceResponse(document, transcript, names), 'base64url')) as CborMap;
  /** One response with all documents, in the format of a wallet. */
  const responseOf = (...responses: readonly CborMap[]) =>
    encodeCbor({ version: '1.0', documents: responses.flatMap((one) => one.get('documents') as readonly CborMap[]), status: 0 });
  async function expectRejected(request: OfPage, json: object, reason: RegExp) {
    const answer = await send(request, json);
    expect(answer.status, answer.text).to.equal(400);
    const { status, credentials, failure } = await shop.session(request.session);
    expect([status, credentials]).to.deep.equal(['failed', undefined]);
    expect(`${failure.code} ${failure.message}`).to.match(reason);
  }

  it('is offered together with OpenID4VP, signed by the access key for this page', async () => {
    const request = await createRequest('both');
    expect(request.requests.map(({ protocol }) => protocol)).to.deep.equal(['openid4vp-v1-signed', 'org-iso-mdoc']);
    const [document, ...otherDocuments] = parseRequestedDocuments(isoRequestOf(request), SHOP);
    expect(otherDocuments).to.deep.equal([]);
    const elements = { [NAMESPACE]: { family_name: true, given_name: false } };
    expect(document).to.deep.include({ docType: MDL, elements, isSigned: true });
    const [leaf] = decode(request.requests[0]?.['data'].request).header['x5c'];
    expect(document?.signer?.raw.toString('base64')).to.equal(leaf);
    const [forOtherPage] = parseRequestedDocuments(isoRequestOf(request), KIOSK);
    expect(forOtherPage?.isSigned, 'for another page').to.equal(false);
  });

  it('is answered by either protocol, with the same result', async () => {
    const byIso = await createRequest('both');
    const transcript = sessionTranscript(isoRequestOf(byIso), SHOP);
    const plaintext = responseOf(presentDocument(licence, transcript, ['family_name', 'given_name']));
    const answer = await send(byIso, { response: sealResponse(isoRequestOf(byIso), SHOP, plaintext) });
    expect([answer.status, answer.body], answer.text).to.deep.equal([200, {}]);
    const { status, credentials } = await shop.session(byIso.session);
    expect(status).to.equal('completed');
    const values = { [NAMESPACE]: { family_name: 'Nygård', given_name: 'Ada' } };
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'licence', values }]);

    const byOpenId = await createRequest('both');
    const { payload } = decode(byOpenId.requests[0]?.['data'].request);
    const vp_token = { card: [bindToRequest({ payload }, card, ['name'], { aud: `origin:${SHOP}` })] };
    const second = await send(byOpenId, { response: await encryptResponse({ payload }, { vp_token }) });
    expect(second.status, second.text).to.equal(200);
    expect((await shop.session(byOpenId.session))['status']).to.equal('completed');
  });

  it('returns several documents in one response', async () => {
    const request = await createRequest('alone');
    expect(request.requests.map(({ protocol }) => protocol)).to.deep.equal(['org-iso-mdoc']);
    const transcript = sessionTranscript(isoRequestOf(request), SHOP);
    const plaintext = responseOf(presentDocument(age, transcript), presentDocument(licence, transcript));
    const answer = await send(request, { response: sealResponse(isoRequestOf(request), SHOP, plaintext) });
    expect(answer.status, answer.text).to.equal(200);
    const { credentials } = await shop.session(request.session);
    expect((credentials as JsonObject[]).map(({ id }) => id).toSorted()).to.deep.equal(['age', 'licence']);
  });

  it('is unsigned if configured, for the calling page only', async () => {
    const [document] = parseRequestedDocuments(isoRequestOf(await createRequest('unsigned')), SHOP);
    expect([document?.signer, document?.isSigned]).to.deep.equal([undefined, false]);
    const json = { response_type: 'dc-api', requestId: 'pages' };
    const rejection = await shop.call('POST', '/verifier/offer', json);
    expect(rejection.status).to.equal(400);
    expect(rejection.text).to.match(/origin.*set the expectedOrigin/);
    const request = await createRequest('pages', { origin: KIOSK });
    const plaintext = responseOf(presentDocument(licence, sessionTranscript(isoRequestOf(request), KIOSK)));
    const answer = await send(request, { response: sealResponse(isoRequestOf(request), KIOSK, plaintext) });
    expect(answer.status, answer.text).to.equal(200);
  });

  it('has fresh keys and nonces each time', async () => {
    const [one, two] = [await createRequest('both'), await createRequest('both')];
    expect(isoRequestOf(one).encryptionInfo).to.not.equal(isoRequestOf(two).encryptionInfo);
    const { payload } = decode(one.requests[0]?.['data'].request);
    const { x } = payload['client_metadata'].jwks.keys[0];
    const info = Buffer.from(isoRequestOf(one).encryptionInfo, 'base64url');
    expect(info.includes(Buffer.from(x, 'base64url')), 'the key of the OpenID4VP request').to.equal(false);
  });

  it('never shows the private keys', async () => {
    const request = await createRequest('both');
    const { text } = await shop.call('GET', `/session/${request.session}`);
    expect(text).to.not.match(/"d":|queryIds|recipientPublicKey/);
  });

  describe('rejects', () => {
    it('a response sealed for another page, another request or another key; a first error leaves it open', async () => {
      const request = await createRequest('alone');
      const otherRequest = await createRequest('alone');
      const plaintext = responseOf(presentDocument(licence, sessionTranscript(isoRequestOf(request), SHOP)));
      const undecryptable = [
        sealResponse(isoRequestOf(request), KIOSK, plaintext),
        sealResponse(isoRequestOf(otherRequest), SHOP, plaintext),
        sealResponse(isoRequestOf(request), SHOP, plaintext, Buffer.alloc(0)),
      ];
      for (const response of undecryptable) {
        expect((await send(request, { response })).status).to.equal(400);
        expect((await shop.session(request.session))['status'], 'the session stays open').to.equal('fetched');
      }
      for (let attempts = undecryptable.length; attempts < MAX_UNDECRYPTED_ATTEMPTS - 1; attempts++)
        await send(request, { response: undecryptable[0] });
      await expectRejected(request, { response: undecryptable[0] }, /does not decrypt/);
    });

    it('a sender key that is not a point of the curve', async () => {
      const request = await createRequest('alone');
      const validResponse = sealResponse(isoRequestOf(request), SHOP, responseOf(presentDocument(licence, Buffer.alloc(1))));
      const [, data] = decodeCbor(Buffer.from(validResponse, 'base64url')) as readonly [string, CborMap];
      const enc = Buffer.alloc(65, 1);
      enc[0] = 4;
      const response = encodeCbor(['dcapi', { enc, cipherText: data.get('cipherText') as Buffer }]);
      const answer = await send(request, { response: response.toString('base64url') });
      expect(answer.status).to.equal(400);
    });

    it('a device that signed another transcript', async () => {
      const request = await createRequest('alone');
      const { encryptionInfo } = isoRequestOf(request);
      const nonce = encryptionInfo;
      const bytes = dcApiTranscript({ origin: SHOP, nonce, encryptionKey: undefined as PublicJwk | undefined });
      for (const wrongTranscript of [bytes, sessionTranscript(isoRequestOf(request), KIOSK)]) {
        const newRequest = await createRequest('alone');
        const plaintext = responseOf(presentDocument(licence, wrongTranscript), presentDocument(age, wrongTranscript));
        await expectRejected(newRequest, { response: sealResponse(isoRequestOf(newRequest), SHOP, plaintext) }, /device_signature/);
      }
    });

    it('unrequested documents, no documents, and one of two', async () => {
      const requestWithoutAge = await createRequest('unsigned');
      const responseWithAge = responseOf(presentDocument(age, sessionTranscript(isoRequestOf(requestWithoutAge), SHOP)));
      await expectRejected(
        requestWithoutAge,
        { response: sealResponse(isoRequestOf(requestWithoutAge), SHOP, responseWithAge) },
        /not requested/,
      );
      const emptyRequest = await createRequest('unsigned');
      const empty = encodeCbor({ version: '1.0', status: 0 });
      await expectRejected(emptyRequest, { response: sealResponse(isoRequestOf(emptyRequest), SHOP, empty) }, /no documents/);
      const partialRequest = await createRequest('alone');
      const one = responseOf(presentDocument(age, sessionTranscript(isoRequestOf(partialRequest), SHOP)));
      await expectRejected(partialRequest, { response: sealResponse(isoRequestOf(partialRequest), SHOP, one) }, /presentation_refused/);
    });

    it('an error status, a repeated document, and missing elements', async () => {
      const requestWithStatus = await createRequest('unsigned');
      const errorResponse = encodeCbor({ version: '1.0', status: 10 });
      await expectRejected(
        requestWithStatus,
        { response: sealResponse(isoRequestOf(requestWithStatus), SHOP, errorResponse) },
        /malformed/,
      );
      const requestWithRepetition = await createRequest('unsigned');
      const one = presentDocument(licence, sessionTranscript(isoRequestOf(requestWithRepetition), SHOP));
      await expectRejected(
        requestWithRepetition,
        { response: sealResponse(isoRequestOf(requestWithRepetition), SHOP, responseOf(one, one)) },
        /multiple/,
      );
      const requestWithMissing = await createRequest('unsigned');
      const part = responseOf(presentDocument(licence, sessionTranscript(isoRequestOf(requestWithMissing), SHOP), ['given_name']));
      await expectRejected(requestWithMissing, { response: sealResponse(isoRequestOf(requestWithMissing), SHOP, part) }, /claim/);
    });

    for (const [description, response] of [
      ['text that is not base64url', 'a+b='],
      ['CBOR of another form', encodeCbor(['dcapi']).toString('base64url')],
      ['another name', encodeCbor(['openid', { enc: Buffer.alloc(65), cipherText: Buffer.alloc(9) }]).toString('base64url')],
      ['no CBOR', Buffer.from([0xff]).toString('base64url')],
    ] as const) {
      it(description, async () => {
        const request = await createRequest('unsigned');
        await expectRejected(request, { response }, /malformed: response|response is not an EncryptedResponse/);
      });
    }

    it('an OpenID4VP response that was not offered, in the clear and encrypted', async () => {
      for (const json of [{ vp_token: { licence: ['x'] } }, { response: 'a.b.c.d.e' }]) {
        await expectRejected(await createRequest('unsigned'), json, /response_mode/);
      }
    });

    it('a response by this protocol that was not offered', async () => {
      await shop.configure({ id: 'only', expectedOrigins: [SHOP], dcql_query: { credentials: [LICENCE] } });
      const request = await createRequest('only');
      const otherRequest = await createRequest('unsigned');
      const plaintext = responseOf(presentDocument(licence, sessionTranscript(isoRequestOf(otherRequest), SHOP)));
      const response = sealResponse(isoRequestOf(otherRequest), SHOP, plaintext);
      expect((await send(request, { response })).status).to.equal(400);
    });
  });

  it('is answered once, also by concurrent responses', async () => {
    const request = await createRequest('unsigned');
    const plaintext = responseOf(presentDocument(licence, sessionTranscript(isoRequestOf(request), SHOP)));
    const response = sealResponse(isoRequestOf(request), SHOP, plaintext);
    const responses = await Promise.all(Array.from({ length: 40 }, () => send(request, { response })));
    expect(responses.filter(({ status }) => status === 200)).to.have.length(1);
  });

  describe('cannot be configured', () => {
    const rejectionReason = async (overrides: object) => {
      const body = { id: 'wrong', expectedOrigins: [SHOP], dcApiProtocols: BOTH, ...overrides };
      const answer = await shop.call('POST', '/verifier/config', body);
      expect(answer.status, answer.text).to.equal(400);
      return answer.text;
    };
    it('for credentials of another format only', async () => {
      expect(await rejectionReason({ dcql_query: { credentials: [CARD] } })).to.match(/credentials.0.*only supports mdocs/);
      const sets = [{ options: [['card']] }];
      const query = { credentials: [CARD, LICENCE], credential_sets: sets };
      expect(await rejectionReason({ dcql_query: query })).to.match(/credential_sets.0.*only supports mdocs, and no option/);
    });
    it('for one document type twice, and without element names', async () => {
      const sameDocType = { credentials: [LICENCE, { ...LICENCE, id: 'again' }] };
      expect(await rejectionReason({ dcql_query: sameDocType })).to.match(/credentials.1.*another query/);
      const { claims: _, ...bare } = LICENCE;
      expect(await rejectionReason({ dcql_query: { credentials: [bare] } })).to.match(/set claims/);
    });
    it('with transaction data, in the configuration or in a request', async () => {
      const type = 'pay';
      const transaction_data = [{ type, credential_ids: ['licence'] }];
      const transactionDataElements = { [type]: { namespace: NAMESPACE, element: 'hash' } };
      const dcql_query = { credentials: [LICENCE] };
      expect(await rejectionReason({ dcql_query, transaction_data, transactionDataElements })).to.match(/not support transaction/);
      await shop.configure({ id: 'pays', expectedOrigins: [SHOP], dcql_query, transactionDataElements, dcApiProtocols: BOTH });
      const body = { response_type: 'dc-api', requestId: 'pays', transaction_data };
      const answer = await shop.call('POST', '/verifier/offer', body);
      expect([answer.status, answer.text]).to.satisfy(([s, t]: [number, string]) => s === 400 && /not support transaction/.test(t));
    });
    it('with no protocol, or with a repeated one', async () => {
      const dcql_query = { credentials: [LICENCE] };
      expect(await rejectionReason({ dcql_query, dcApiProtocols: [] })).to.match(/dcApiProtocols/);
      const repeatedProtocols = ['openid4vp', 'openid4vp'];
      expect(await rejectionReason({ dcql_query, dcApiProtocols: repeatedProtocols })).to.match(/each of them once/);
    });
  });
});
