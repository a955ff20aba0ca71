import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { verifySdJwtVc } from '../../application/verification/verify-sd-jwt-vc.ts';
import { processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { withoutUndisclosed } from '../support/sd-jwt-maker.ts';

type DisclosureCase = {
  readonly name: string;
  readonly payload: JsonObject;
  readonly disclosures: readonly string[];
  readonly processed?: JsonObject;
  readonly error?: string;
};
type PresentationCase = {
  readonly name: string;
  readonly presentation: string;
  readonly expect: string;
  readonly processed?: JsonObject;
  readonly transaction_data?: readonly string[];
};
type Vectors = {
  readonly now: number;
  readonly expected_aud: string;
  readonly expected_nonce: string;
  readonly requested_vct: string;
  readonly trust_anchors: readonly string[];
  readonly disclosures: readonly DisclosureCase[];
  readonly presentations: readonly PresentationCase[];
};

const vectors = JSON.parse(readFileSync(new URL('sd-jwt-vc.json', import.meta.url), 'utf8')) as Vectors;
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };
const anchors = vectors.trust_anchors.map((certificate) => ({ certificate }));

/** Cases whose outcome the protocols leave to us, and what we decided. */
const DECIDED: Readonly<Record<string, string>> = {
  'typ vc+sd-jwt': 'issuer_typ',
  'x5c includes trust anchor': 'accept',
  'cnf private key': 'holder_key_missing',
};

function outcomeOf(check: () => unknown): string {
  try {
    check();
    return 'accept';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function check(one: PresentationCase, haip = false) {
  const checked = verifySdJwtVc(ports, one.presentation, {
    now: new Date(vectors.now * 1000),
    nonce: vectors.expected_nonce,
    audience: vectors.expected_aud,
    anchors,
    holderBinding: true,
    haip,
    sdJwtAlgorithms: ['ES256'],
    kbAlgorithms: ['ES256'],
    ...(one.transaction_data && { transactionData: one.transaction_data }),
  });
  if (checked.vct !== vectors.requested_vct) throw new Refusal('type_mismatch');
  return checked;
}

describe('SD-JWT disclosure vectors', () => {
  for (const one of vectors.disclosures) {
    it(`${one.error === undefined ? 'are accepted' : 'are rejected'}: ${one.name}`, () => {
      const run = () => withoutUndisclosed(processDisclosures(one.payload, one.disclosures).claims);
      if (one.error === undefined) expect(run()).to.deep.equal(one.processed);
      else expect(outcomeOf(run)).to.equal(one.error);
    });
  }
});

describe('SD-JWT VC presentation vectors', () => {
  for (const one of vectors.presentations) {
    const expected = DECIDED[one.name] ?? one.expect;
    it(`${expected === 'accept' ? 'are accepted' : `are rejected as ${expected}`}: ${one.name}`, () => {
      expect(outcomeOf(() => check(one))).to.equal(expected);
      if (one.processed === undefined) return;
      const claims = withoutUndisclosed(check(one).claims);
      for (const [name, value] of Object.entries(one.processed)) expect(claims[name]).to.deep.equal(value);
    });
  }

  it('are rejected with an anchor inside the chain when HAIP is required', () => {
    const one = vectors.presentations.find(({ name }) => name === 'x5c includes trust anchor');
    expect(one).to.not.equal(undefined);
    if (one !== undefined) expect(outcomeOf(() => check(one, true))).to.equal('x5c_contains_anchor');
  });
});
