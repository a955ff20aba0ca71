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
const EITHER = { credentials: [CARD, LICENCE], credential_sets: [{ options: [['card'], ['licence']] }] };
const AGED = { id: 'age', format: 'mso_mdoc', meta: { doctype_value: AGE }, claims: [{ path: [AGE, 'over'] }] };
const BOTH = ['openid4vp', 'org-iso-mdoc'];

// biome-ignore lint/suspicious/noExplicitAny: members of requests
type Members = Record<string, any>;
type OfPage = { readonly session: string; readonly uri: string; readonly requests: readonly Members[] };

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
      const written = await shop.call('POST', '/issuer/credentials', { id, config }, shop.acme.token);
      expect(written.status, written.text).to.equal(201);
      return { ...(await shop.issue(id)), docType };
    };
    licence = await mdoc('mdl', MDL, { [NAMESPACE]: { family_name: 'Nygård', given_name: 'Ada', sex: 2 } });
    age = await mdoc('age', AGE, { [AGE]: { over: true } });
    card = await shop.issue();
    const expectedOrigins = [SHOP];
    const alone = { dcApiProtocols: ['org-iso-mdoc'] };
    await shop.configure({ id: 'both', expectedOrigins, dcql_query: EITHER, dcApiProtocols: BOTH });
    const two = { credentials: [LICENCE, AGED] };
    await shop.configure({ id: 'alone', expectedOrigins, dcql_query: two, ...alone });
    const unsigned = { dcql_query: { credentials: [LICENCE] }, dcApiRequest: 'unsigned' };
    await shop.configure({ id: 'unsigned', expectedOrigins, ...unsigned, ...alone });
    await shop.configure({ id: 'pages', ...unsigned, ...alone, expectedOrigins: [SHOP, KIOSK] });
  });
  after(() => shop.close());

  async function ask(requestId: string, more: object = {}): Promise<OfPage> {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId, ...more });
    expect(made.status, made.text).to.equal(201);
    const fetched = await shop.service.call('GET', made.body.uri);
    expect(fetched.body, 'the same each time').to.deep.equal(made.body.dcApi);
    return { session: made.body.session, uri: made.body.uri, requests: fetched.body.requests };
  }
  const isoOf = ({ requests }: OfPage): IsoMdocData => requests.find(({ protocol }) => protocol === 'org-iso-mdoc')?.['data'];
  const hand = (asked: OfPage, json: object) => shop.service.call('POST', asked.uri, { json });
  const shown = (held: HeldCredential & { docType: string }, transcript: Buffer, names?: readonly string[]) =>
    decodeCbor(Buffer.from(deviceResponse(held, transcript, names), 'base64url')) as CborMap;
  /** One response with all documents, as a wallet makes it. */
  const responseOf = (...responses: readonly CborMap[]) =>
    encodeCbor({ version: '1.0', documents: responses.flatMap((one) => one.get('documents') as readonly CborMap[]), status: 0 });
  async function refused(asked: OfPage, json: object, reason: RegExp) {
    const answer = await hand(asked, json);
    expect(answer.status, answer.text).to.equal(400);
    const { status, credentials, failure } = await shop.session(asked.session);
    expect([status, credentials]).to.deep.equal(['failed', undefined]);
    expect(`${failure.code} ${failure.message}`).to.match(reason);
  }

  it('is offered together with OpenID4VP, signed by the access key for this page', async () => {
    const asked = await ask('both');
    expect(asked.requests.map(({ protocol }) => protocol)).to.deep.equal(['openid4vp-v1-signed', 'org-iso-mdoc']);
    const [document, ...others] = parseRequestedDocuments(isoOf(asked), SHOP);
    expect(others).to.deep.equal([]);
    const elements = { [NAMESPACE]: { family_name: true, given_name: false } };
    expect(document).to.deep.include({ docType: MDL, elements, isSigned: true });
    const [leaf] = decode(asked.requests[0]?.['data'].request).header['x5c'];
    expect(document?.signer?.raw.toString('base64')).to.equal(leaf);
    const [elsewhere] = parseRequestedDocuments(isoOf(asked), KIOSK);
    expect(elsewhere?.isSigned, 'for another page').to.equal(false);
  });

  it('is answered by either protocol, with the same result', async () => {
    const byIso = await ask('both');
    const transcript = sessionTranscript(isoOf(byIso), SHOP);
    const plaintext = responseOf(shown(licence, transcript, ['family_name', 'given_name']));
    const answer = await hand(byIso, { response: sealResponse(isoOf(byIso), SHOP, plaintext) });
    expect([answer.status, answer.body], answer.text).to.deep.equal([200, {}]);
    const { status, credentials } = await shop.session(byIso.session);
    expect(status).to.equal('completed');
    const values = { [NAMESPACE]: { family_name: 'Nygård', given_name: 'Ada' } };
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'licence', values }]);

    const byOpenId = await ask('both');
    const { payload } = decode(byOpenId.requests[0]?.['data'].request);
    const vp_token = { card: [bindToRequest({ payload }, card, ['name'], { aud: `origin:${SHOP}` })] };
    const second = await hand(byOpenId, { response: await encryptResponse({ payload }, { vp_token }) });
    expect(second.status, second.text).to.equal(200);
    expect((await shop.session(byOpenId.session))['status']).to.equal('completed');
  });

  it('returns several documents in one response', async () => {
    const asked = await ask('alone');
    expect(asked.requests.map(({ protocol }) => protocol)).to.deep.equal(['org-iso-mdoc']);
    const transcript = sessionTranscript(isoOf(asked), SHOP);
    const plaintext = responseOf(shown(age, transcript), shown(licence, transcript));
    const answer = await hand(asked, { response: sealResponse(isoOf(asked), SHOP, plaintext) });
    expect(answer.status, answer.text).to.equal(200);
    const { credentials } = await shop.session(asked.session);
    expect((credentials as Members[]).map(({ id }) => id).toSorted()).to.deep.equal(['age', 'licence']);
  });

  it('is unsigned if configured, for the calling page only', async () => {
    const [document] = parseRequestedDocuments(isoOf(await ask('unsigned')), SHOP);
    expect([document?.signer, document?.isSigned]).to.deep.equal([undefined, false]);
    const json = { response_type: 'dc-api', requestId: 'pages' };
    const unclear = await shop.call('POST', '/verifier/offer', json);
    expect(unclear.status).to.equal(400);
    expect(unclear.text).to.match(/origin.*set the expectedOrigin/);
    const asked = await ask('pages', { origin: KIOSK });
    const plaintext = responseOf(shown(licence, sessionTranscript(isoOf(asked), KIOSK)));
    const answer = await hand(asked, { response: sealResponse(isoOf(asked), KIOSK, plaintext) });
    expect(answer.status, answer.text).to.equal(200);
  });

  it('has fresh keys and nonces each time', async () => {
    const [one, two] = [await ask('both'), await ask('both')];
    expect(isoOf(one).encryptionInfo).to.not.equal(isoOf(two).encryptionInfo);
    const { payload } = decode(one.requests[0]?.['data'].request);
    const { x } = payload['client_metadata'].jwks.keys[0];
    const info = Buffer.from(isoOf(one).encryptionInfo, 'base64url');
    expect(info.includes(Buffer.from(x, 'base64url')), 'the key of OpenID4VP').to.equal(false);
  });

  it('never shows the private keys', async () => {
    const asked = await ask('both');
    const { text } = await shop.call('GET', `/session/${asked.session}`);
    expect(text).to.not.match(/"d":|queryIds|recipientPublicKey/);
  });

  describe('rejects', () => {
    it('a response sealed for another page, another request or another key; a first error leaves it open', async () => {
      const asked = await ask('alone');
      const other = await ask('alone');
      const plaintext = responseOf(shown(licence, sessionTranscript(isoOf(asked), SHOP)));
      const bad = [
        sealResponse(isoOf(asked), KIOSK, plaintext),
        sealResponse(isoOf(other), SHOP, plaintext),
        sealResponse(isoOf(asked), SHOP, plaintext, Buffer.alloc(0)),
      ];
      for (const response of bad) {
        expect((await hand(asked, { response })).status).to.equal(400);
        expect((await shop.session(asked.session))['status'], 'still open').to.equal('fetched');
      }
      for (let tries = bad.length; tries < MAX_UNDECRYPTED_ATTEMPTS - 1; tries++) await hand(asked, { response: bad[0] });
      await refused(asked, { response: bad[0] }, /does not decrypt/);
    });

    it('a sender key that is not a point of the curve', async () => {
      const asked = await ask('alone');
      const good = sealResponse(isoOf(asked), SHOP, responseOf(shown(licence, Buffer.alloc(1))));
      const [, data] = decodeCbor(Buffer.from(good, 'base64url')) as readonly [string, CborMap];
      const enc = Buffer.alloc(65, 1);
      enc[0] = 4;
      const response = encodeCbor(['dcapi', { enc, cipherText: data.get('cipherText') as Buffer }]);
      const answer = await hand(asked, { response: response.toString('base64url') });
      expect(answer.status).to.equal(400);
    });

    it('a device that signed another transcript', async () => {
      const asked = await ask('alone');
      const { encryptionInfo } = isoOf(asked);
      const nonce = encryptionInfo;
      const bytes = dcApiTranscript({ origin: SHOP, nonce, encryptionKey: undefined as PublicJwk | undefined });
      for (const wrong of [bytes, sessionTranscript(isoOf(asked), KIOSK)]) {
        const fresh = await ask('alone');
        const plaintext = responseOf(shown(licence, wrong), shown(age, wrong));
        await refused(fresh, { response: sealResponse(isoOf(fresh), SHOP, plaintext) }, /device_signature/);
      }
    });

    it('unrequested documents, no documents, and one of two', async () => {
      const unasked = await ask('unsigned');
      const other = responseOf(shown(age, sessionTranscript(isoOf(unasked), SHOP)));
      await refused(unasked, { response: sealResponse(isoOf(unasked), SHOP, other) }, /not requested/);
      const none = await ask('unsigned');
      const empty = encodeCbor({ version: '1.0', status: 0 });
      await refused(none, { response: sealResponse(isoOf(none), SHOP, empty) }, /no documents/);
      const half = await ask('alone');
      const one = responseOf(shown(age, sessionTranscript(isoOf(half), SHOP)));
      await refused(half, { response: sealResponse(isoOf(half), SHOP, one) }, /presentation_refused/);
    });

    it('an error status, a repeated document, and missing elements', async () => {
      const failed = await ask('unsigned');
      const bad = encodeCbor({ version: '1.0', status: 10 });
      await refused(failed, { response: sealResponse(isoOf(failed), SHOP, bad) }, /malformed/);
      const twice = await ask('unsigned');
      const one = shown(licence, sessionTranscript(isoOf(twice), SHOP));
      await refused(twice, { response: sealResponse(isoOf(twice), SHOP, responseOf(one, one)) }, /multiple/);
      const less = await ask('unsigned');
      const part = responseOf(shown(licence, sessionTranscript(isoOf(less), SHOP), ['given_name']));
      await refused(less, { response: sealResponse(isoOf(less), SHOP, part) }, /claim/);
    });

    for (const [what, response] of [
      ['text that is not base64url', 'a+b='],
      ['CBOR of another form', encodeCbor(['dcapi']).toString('base64url')],
      ['another name', encodeCbor(['openid', { enc: Buffer.alloc(65), cipherText: Buffer.alloc(9) }]).toString('base64url')],
      ['no CBOR', Buffer.from([0xff]).toString('base64url')],
    ] as const) {
      it(what, async () => {
        const asked = await ask('unsigned');
        await refused(asked, { response }, /malformed: response|response is not an EncryptedResponse/);
      });
    }

    it('an OpenID4VP response that was not offered, in the clear and encrypted', async () => {
      for (const json of [{ vp_token: { licence: ['x'] } }, { response: 'a.b.c.d.e' }]) {
        await refused(await ask('unsigned'), json, /response_mode/);
      }
    });

    it('a response by this protocol that was not offered', async () => {
      await shop.configure({ id: 'only', expectedOrigins: [SHOP], dcql_query: { credentials: [LICENCE] } });
      const asked = await ask('only');
      const other = await ask('unsigned');
      const plaintext = responseOf(shown(licence, sessionTranscript(isoOf(other), SHOP)));
      const response = sealResponse(isoOf(other), SHOP, plaintext);
      expect((await hand(asked, { response })).status).to.equal(400);
    });
  });

  it('is answered once, also by concurrent responses', async () => {
    const asked = await ask('unsigned');
    const plaintext = responseOf(shown(licence, sessionTranscript(isoOf(asked), SHOP)));
    const response = sealResponse(isoOf(asked), SHOP, plaintext);
    const answers = await Promise.all(Array.from({ length: 40 }, () => hand(asked, { response })));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
  });

  describe('cannot be configured', () => {
    const refusal = async (more: object) => {
      const body = { id: 'wrong', expectedOrigins: [SHOP], dcApiProtocols: BOTH, ...more };
      const answer = await shop.call('POST', '/verifier/config', body);
      expect(answer.status, answer.text).to.equal(400);
      return answer.text;
    };
    it('for credentials of another format only', async () => {
      expect(await refusal({ dcql_query: { credentials: [CARD] } })).to.match(/credentials.0.*only supports mdocs/);
      const sets = [{ options: [['card']] }];
      const query = { credentials: [CARD, LICENCE], credential_sets: sets };
      expect(await refusal({ dcql_query: query })).to.match(/credential_sets.0.*only supports mdocs, and no option/);
    });
    it('for one document type twice, and without element names', async () => {
      const twice = { credentials: [LICENCE, { ...LICENCE, id: 'again' }] };
      expect(await refusal({ dcql_query: twice })).to.match(/credentials.1.*another query/);
      const { claims: _, ...bare } = LICENCE;
      expect(await refusal({ dcql_query: { credentials: [bare] } })).to.match(/set claims/);
    });
    it('with transaction data, in the configuration or in a request', async () => {
      const type = 'pay';
      const transaction_data = [{ type, credential_ids: ['licence'] }];
      const transactionDataElements = { [type]: { namespace: NAMESPACE, element: 'hash' } };
      const dcql_query = { credentials: [LICENCE] };
      expect(await refusal({ dcql_query, transaction_data, transactionDataElements })).to.match(/not support transaction/);
      await shop.configure({ id: 'pays', expectedOrigins: [SHOP], dcql_query, transactionDataElements, dcApiProtocols: BOTH });
      const body = { response_type: 'dc-api', requestId: 'pays', transaction_data };
      const answer = await shop.call('POST', '/verifier/offer', body);
      expect([answer.status, answer.text]).to.satisfy(([s, t]: [number, string]) => s === 400 && /not support transaction/.test(t));
    });
    it('with no protocol, or with a repeated one', async () => {
      const dcql_query = { credentials: [LICENCE] };
      expect(await refusal({ dcql_query, dcApiProtocols: [] })).to.match(/dcApiProtocols/);
      const twice = ['openid4vp', 'openid4vp'];
      expect(await refusal({ dcql_query, dcApiProtocols: twice })).to.match(/each of them once/);
    });
  });
});
