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

function resultOf(check: () => unknown): string {
  try {
    check();
    return 'accept';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function check(vector: PresentationCase, haip = false) {
  const checked = verifySdJwtVc(ports, vector.presentation, {
    now: new Date(vectors.now * 1000),
    nonce: vectors.expected_nonce,
    audience: vectors.expected_aud,
    anchors,
    holderBinding: true,
    haip,
    sdJwtAlgorithms: ['ES256'],
    kbAlgorithms: ['ES256'],
    ...(vector.transaction_data && { transactionData: vector.transaction_data }),
  });
  if (checked.vct !== vectors.requested_vct) throw new Refusal('type_mismatch');
  return checked;
}

describe('SD-JWT disclosure vectors', () => {
  for (const vector of vectors.disclosures) {
    it(`${vector.error === undefined ? 'are accepted' : 'are rejected'}: ${vector.name}`, () => {
      const run = () => withoutUndisclosed(processDisclosures(vector.payload, vector.disclosures).claims);
      if (vector.error === undefined) expect(run()).to.deep.equal(vector.processed);
      else expect(resultOf(run)).to.equal(vector.error);
    });
  }
});

describe('SD-JWT VC presentation vectors', () => {
  for (const vector of vectors.presentations) {
    const expectedResult = DECIDED[vector.name] ?? vector.expect;
    it(`${expectedResult === 'accept' ? 'are accepted' : `are rejected as ${expectedResult}`}: ${vector.name}`, () => {
      expect(resultOf(() => check(vector))).to.equal(expectedResult);
      if (vector.processed === undefined) return;
      const claims = withoutUndisclosed(check(vector).claims);
      for (const [name, value] of Object.entries(vector.processed)) expect(claims[name]).to.deep.equal(value);
    });
  }

  it('are rejected with an anchor inside the chain when HAIP is required', () => {
    const vector = vectors.presentations.find(({ name }) => name === 'x5c includes trust anchor');
    expect(vector).to.not.equal(undefined);
    if (vector !== undefined) expect(resultOf(() => check(vector, true))).to.equal('x5c_contains_anchor');
  });
});
