import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { verifyMdoc } from '../../application/verification/verify-mdoc.ts';
import { verifySdJwtVc } from '../../application/verification/verify-sd-jwt-vc.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { presentMdoc } from '../support/mdoc-maker.ts';
import {
  type Category,
  deduplicate,
  explain,
  HARMLESS_MDOC_MUTATIONS,
  MDOC_LOOSER,
  MDOC_STRICTER,
  type Mutation,
  SD_JWT_STRICTER,
  seededRandom,
} from '../support/mutations.ts';
import { corruptMdocs, signedMdocMutations } from '../support/mutations-mdoc.ts';
import { credentialMaker, holderMutations, issuerMutations } from '../support/mutations-sd-jwt.ts';
import { loadOracles, type OracleVerdict } from '../support/oracles.ts';
import { type HolderKey, newKey } from '../support/raw-wallet.ts';
import { withoutUndisclosed } from '../support/sd-jwt-maker.ts';
import { certify, DOCUMENT_SIGNER } from '../support/test-certificates.ts';

const read = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
const sd = read('sd-jwt-vc.json');
const mdoc = read('mdoc.json');
const STATUS_URI = 'https://issuer.example/status/1';
const SEED = 20_270_115;

type Claims = Readonly<Record<string, unknown>>;
type Own = { readonly claims: Claims; readonly reason?: undefined } | { readonly claims?: undefined; readonly reason: string };
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };

function verdictOf(check: () => Claims): Own {
  try {
    return { claims: JSON.parse(JSON.stringify(check())) };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.reason };
    throw error;
  }
}

const NOW = new Date(sd.now * 1000);
const transcript = Buffer.from(
  read('session-transcript.json').vectors.find(({ name }: { name: string }) => name === 'spec-direct_post.jwt').session_transcript_hex,
  'hex',
);

const { d, ...holderJwk } = sd.holder_private_jwk;
const holder: HolderKey = { jwk: holderJwk, privateKey: createPrivateKey({ key: { ...holderJwk, d }, format: 'jwk' }) };
const authority = await certify({ name: 'Authority, C=GB', ca: true });
const leaf = await certify({ name: 'Issuer, C=GB', by: authority, ...DOCUMENT_SIGNER });
const issuer = { key: leaf, chain: [leaf.certificate] };

const ecosystem = {
  authority,
  vct: sd.requested_vct,
  statusUri: STATUS_URI,
  base: { issuer, holder, audience: sd.expected_aud, nonce: sd.expected_nonce, now: sd.now },
};
const mdocBase = {
  issuer,
  holder: newKey(),
  docType: mdoc.docType,
  elements: { 'org.iso.18013.5.1': { family_name: 'Lovelace', given_name: 'Ada', age_over_18: true, height: 170 } },
  transcript,
  now: sd.now,
};

/** Good presentations by name. The vectors' bytes are always the same; the others are made anew, with their keys. */
const presentationOf = (name: string) => sd.presentations.find((one: { name: string }) => one.name === name);
const SD_JWTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['valid', 'valid, nothing disclosed', 'valid with transaction data'].map((name) => [name, presentationOf(name).presentation]),
  ),
  'with nested claims': credentialMaker(ecosystem)(),
};
const responseOf = (name: string) => mdoc.vectors.find((one: { name: string }) => one.name === name).device_response as string;
const MDOCS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['valid direct_post.jwt', 'valid with full-date and bytes', 'valid with device-signed elements'].map((name) => [
      name,
      responseOf(name),
    ]),
  ),
  'made here': presentMdoc(mdocBase),
};

function judgeSdJwt({ base, text }: Pick<Mutation, 'base' | 'text'>): Own {
  const { transaction_data: transactionData } = presentationOf(base) ?? {};
  return verdictOf(() =>
    withoutUndisclosed(
      verifySdJwtVc(ports, text, {
        now: NOW,
        requestedAt: new Date(NOW.getTime() - 60_000),
        nonce: sd.expected_nonce,
        audience: sd.expected_aud,
        anchors,
        holderBinding: true,
        sdJwtAlgorithms: ['ES256'],
        kbAlgorithms: ['ES256'],
        ...(transactionData && { transactionData }),
      }).claims,
    ),
  );
}

function judgeMdoc({ text }: Pick<Mutation, 'text'>): Own {
  return verdictOf(
    () =>
      verifyMdoc(ports, text, {
        now: NOW,
        transcripts: [transcript],
        docType: mdoc.docType,
        anchors,
        holderBinding: true,
        issuerAlgorithms: ['ES256'],
        deviceAlgorithms: ['ES256'],
      }).namespaces,
  );
}

const anchorTexts: readonly string[] = [...sd.trust_anchors, ...mdoc.trust_anchors, authority.certificate];
const anchors = anchorTexts.map((certificate) => ({ certificate }));

type Judged = Mutation & { readonly own: Own };

const countOf = (names: readonly string[]) => {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};
const countsOf = (categories: readonly Category[]) => Object.fromEntries(categories.map(({ explanation: why, count }) => [why, count]));

/** Whether one says nothing that the other does not say. */
function isPart(some: unknown, whole: unknown): boolean {
  if (typeof some !== 'object' || some === null || Array.isArray(some)) return isDeepStrictEqual(some, whole);
  return Object.entries(some).every(([name, value]) => isPart(value, (whole as Claims | undefined)?.[name]));
}

describe('mutated presentations', () => {
  let sdJwts: readonly Judged[];
  let mdocs: readonly Judged[];
  const good = new Map<string, Claims>();

  before(async () => {
    const random = seededRandom(SEED);
    const fixed = Object.entries(SD_JWTS).filter(([name]) => presentationOf(name) !== undefined);
    sdJwts = deduplicate(
      [
        ...fixed.flatMap(([name, text]) => holderMutations({ name, text, holder }, random)),
        ...(await issuerMutations('with nested claims', ecosystem)),
      ],
      Object.values(SD_JWTS),
    ).map((one) => ({ ...one, own: judgeSdJwt(one) }));
    mdocs = deduplicate(
      [
        ...Object.entries(MDOCS)
          .filter(([name]) => name !== 'made here')
          .flatMap(([name, text]) => corruptMdocs(name, text, random)),
        ...(await signedMdocMutations('made here', mdocBase, authority)),
      ],
      Object.values(MDOCS),
    ).map((one) => ({ ...one, own: judgeMdoc(one) }));
    for (const [base, text] of Object.entries(SD_JWTS)) note(base, judgeSdJwt({ base, text }));
    for (const [base, text] of Object.entries(MDOCS)) note(base, judgeMdoc({ text }));
  });

  function note(base: string, { claims, reason }: Own): void {
    expect(reason, base).to.equal(undefined);
    good.set(base, claims ?? {});
  }

  it('are many, and the same ones each time', () => {
    expect([sdJwts.length, mdocs.length]).to.deep.equal([3864, 2887]);
    expect(sdJwts.length + mdocs.length).to.be.greaterThan(2_000);
  });

  it('are accepted if they are valid', () => {
    const right = [...sdJwts, ...mdocs].filter(({ nature }) => nature === 'same');
    expect(right.length).to.be.greaterThan(20);
    for (const { own, base, kind, description } of right) {
      expect(own.reason, `${base}: ${kind}, ${description}`).to.equal(undefined);
      expect(isPart(own.claims, good.get(base)), `${base}: ${kind}, ${description}`).to.equal(true);
    }
  });

  it('are rejected if a signature covers the changed part', () => {
    const taken = sdJwts.filter(({ nature, own }) => nature === 'bad' && own.claims !== undefined);
    expect(taken.map(({ base, kind, description }) => `${base}: ${kind}, ${description}`)).to.deep.equal([]);
  });

  it('are accepted only with content of the original', () => {
    const taken = mdocs.filter(({ nature, own }) => nature === 'bad' && own.claims !== undefined);
    for (const { own, base, kind, description } of taken) {
      expect(isPart(own.claims, good.get(base)), `${base}: ${kind}, ${description}`).to.equal(true);
    }
    expect(countOf(taken.map(({ kind }) => kind))).to.deep.equal(HARMLESS_MDOC_MUTATIONS);
  });

  it('are evaluated like in other implementations, or the difference is explained', async function () {
    const oracles = loadOracles();
    if (oracles === undefined) return this.skip();
    const lists = { [STATUS_URI]: read('derivations.json').status_list_token.compact };
    const expected = { anchors: anchorTexts, seconds: sd.now };
    const [ofSdJwts, ofMdocs] = await Promise.all([
      oracles.judgeSdJwtVcs(textsOf(sdJwts), { ...expected, nonce: sd.expected_nonce, lists }),
      oracles.judgeMdocs(textsOf(mdocs), { ...expected, transcript: transcript.toString('base64url') }),
    ]);
    const stricter = disagreements(sdJwts, ofSdJwts, SD_JWT_STRICTER, []);
    expect(stricter).to.deep.equal(countsOf(SD_JWT_STRICTER));
    const both = disagreements(mdocs, ofMdocs, MDOC_STRICTER, MDOC_LOOSER);
    expect(both).to.deep.equal({ ...countsOf(MDOC_STRICTER), ...countsOf(MDOC_LOOSER) });
  });
});

const textsOf = (all: readonly Judged[]) => all.map(({ text }) => text);

/** How often each category explains a disagreement. What both take has to say the same to both. */
function disagreements(
  all: readonly Judged[],
  others: readonly OracleVerdict[],
  stricter: readonly Category[],
  looser: readonly Category[],
): Readonly<Record<string, number>> {
  const names = all.flatMap((one, at) => {
    const { own } = one;
    const other = others[at];
    if (other === undefined) throw new Error('not judged');
    if (own.claims !== undefined && other.claims !== undefined) {
      expect(own.claims, `${one.base}: ${one.kind}, ${one.description}`).to.deep.equal(other.claims);
    }
    if ((own.claims === undefined) === (other.claims === undefined)) return [];
    return [explain(own.claims === undefined ? stricter : looser, one, own.reason)];
  });
  return countOf(names);
}
