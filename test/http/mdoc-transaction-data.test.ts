import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import type { Cbor } from '../../domain/formats/cbor/values.ts';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { type MdocBend, presentMdoc } from '../support/mdoc-maker.ts';
import { type Asked, formOf, Shop } from '../support/present.ts';
import { newKey, now } from '../support/raw-wallet.ts';
import { withoutIssuers } from '../support/results.ts';
import { type Certified, certify, pem } from '../support/test-certificates.ts';

const DOC_TYPE = 'org.example.account.1';
const NAMESPACE = 'org.example.account';
const TYPE = 'urn:example:payment';
const ELEMENT = 'transaction_data_hash';
const account = (id: string) => ({
  id,
  format: 'mso_mdoc',
  meta: { doctype_value: DOC_TYPE },
  claims: [{ path: [NAMESPACE, 'iban'] }],
});
const PAYMENT = { type: TYPE, credential_ids: ['account'], amount: '12.00' };

/** SHA-256 unless stated. */
const hashOf = (text: string, algorithm = 'sha256') => createHash(algorithm).update(text, 'ascii').digest();

describe('transaction data that an mdoc confirms', () => {
  let shop: Shop;
  let signer: Certified;
  let root: Certified;
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
  function show(asked: Asked, value: Cbor | undefined, bend: MdocBend = {}): string {
    const { client_id: clientId, response_uri: responseUri, nonce } = asked.payload;
    const transcript = redirectTranscript({
      clientId,
      responseUri,
      nonce,
      encryptionKey: undefined,
    });
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
  const answer = async (asked: Asked, presentations: Record<string, string>) => {
    const vpToken = Object.fromEntries(Object.entries(presentations).map(([id, text]) => [id, [text]]));
    const { status } = await shop.post(asked, await formOf(asked, vpToken));
    const { failure, credentials } = await shop.session(asked.session);
    return { status, failure: failure?.message as string | undefined, credentials };
  };
  const entryOf = (asked: Asked, index = 0): string => asked.payload['transaction_data'][index];

  it('is accepted by its hash, which is no claim', async () => {
    const asked = await shop.ask('payment');
    const { status, credentials } = await answer(asked, { account: show(asked, hashOf(entryOf(asked))) });
    expect(status).to.equal(200);
    expect(withoutIssuers(credentials)).to.deep.equal([
      { id: 'account', values: { [NAMESPACE]: { iban: 'DE02120300000000202051' } } },
    ]);
  });
  it('is accepted as one of several hashes, in any order', async () => {
    const entries = [PAYMENT, { ...PAYMENT, amount: '7.00' }];
    const asked = await shop.ask('payment', { transaction_data: entries });
    const hashes = [hashOf(entryOf(asked, 1)), hashOf(entryOf(asked, 0))];
    expect((await answer(asked, { account: show(asked, hashes) })).status).to.equal(200);
  });
  it('is accepted by another hash when the entry asks for it', async () => {
    const entry = { ...PAYMENT, transaction_data_hashes_alg: ['sha-512'] };
    const asked = await shop.ask('payment', { transaction_data: [entry] });
    const short = await shop.ask('payment', { transaction_data: [entry] });
    const value = hashOf(entryOf(asked), 'sha512');
    expect((await answer(asked, { account: show(asked, value) })).status).to.equal(200);
    expect((await answer(short, { account: show(short, hashOf(entryOf(short))) })).failure).to.match(
      /transaction_data_mismatch/,
    );
  });
  it('is confirmed by one of the credentials that an entry names', async () => {
    const query = { credentials: [account('account'), account('savings')] };
    const transaction_data = [{ ...PAYMENT, credential_ids: ['account', 'savings'] }];
    await shop.configure({ ...base, id: 'either', dcql_query: query, transaction_data });
    const asked = await shop.ask('either');
    const confirming = show(asked, hashOf(entryOf(asked)));
    const silent = show(asked, undefined);
    expect((await answer(asked, { account: silent, savings: confirming })).status).to.equal(200);
    const nobody = await shop.ask('either');
    const both = { account: show(nobody, undefined), savings: show(nobody, undefined) };
    expect((await answer(nobody, both)).failure).to.match(/transaction_data_missing/);
  });

  const bad: readonly [string, (asked: Asked) => string | Promise<string>, RegExp][] = [
    ['N127 without a hash', (asked) => show(asked, undefined), /transaction_data_missing/],
    [
      'N128 with the hash of the decoded entry',
      (asked) => show(asked, hashOf(Buffer.from(entryOf(asked), 'base64url').toString())),
      /transaction_data_mismatch/,
    ],
    [
      'N129 with the hash of an entry of another request',
      async (asked) =>
        show(
          asked,
          hashOf(
            entryOf(await shop.ask('payment', { transaction_data: [{ ...PAYMENT, amount: '1200.00' }] })),
          ),
        ),
      /transaction_data_mismatch/,
    ],
    [
      'N131 with a hash too many',
      (asked) => show(asked, [hashOf(entryOf(asked)), hashOf('another')]),
      /transaction_data_mismatch/,
    ],
    ['with a number', (asked) => show(asked, 7), /transaction_data_mismatch/],
    ['with an empty list', (asked) => show(asked, []), /transaction_data_mismatch/],
    [
      'N124 in an element that the issuer did not let the device sign',
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
            const nameSpaces = embed(
              encodeCbor(new Map([[NAMESPACE, new Map([[ELEMENT, hashOf(entryOf(asked))]])]])),
            );
            return { ...document, deviceSigned: { ...(document['deviceSigned'] as object), nameSpaces } };
          },
        }),
      /device_signature/,
    ],
  ];
  for (const [name, make, reason] of bad) {
    it(`is refused ${name}`, async () => {
      const asked = await shop.ask('payment');
      const { status, failure, credentials } = await answer(asked, { account: await make(asked) });
      expect([status, credentials]).to.deep.equal([400, undefined]);
      expect(failure).to.match(reason);
    });
  }

  it('N15 needs an element, which the configuration names for the type', async () => {
    for (const transactionDataElements of [
      undefined,
      null,
      { 'urn:other': { namespace: 'a', element: 'b' } },
    ]) {
      const json = { ...base, id: 'bad', transactionDataElements };
      const answer = await shop.call('POST', '/verifier/config', json);
      expect(answer.status).to.equal(400);
      expect(answer.body.errors[0].path).to.equal('transaction_data.0.credential_ids.0');
      expect(answer.body.detail).to.match(/transactionDataElements/);
    }
    const other = { ...PAYMENT, type: 'urn:other' };
    const json = { response_type: 'uri', requestId: 'payment', transaction_data: [other] };
    const refused = await shop.call('POST', '/verifier/offer', json);
    expect([refused.status, refused.body.errors[0].path]).to.deep.equal([
      400,
      'transaction_data.0.credential_ids.0',
    ]);
  });

  it('has its check in the report, between the device and the query', async () => {
    const asked = await shop.ask('payment');
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
