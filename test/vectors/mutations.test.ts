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

const readVectors = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
const sd = readVectors('sd-jwt-vc.json');
const mdoc = readVectors('mdoc.json');
const STATUS_URI = 'https://issuer.example/status/1';
const SEED = 20_270_115;

type Claims = Readonly<Record<string, unknown>>;
type OwnResult = { readonly claims: Claims; readonly reason?: undefined } | { readonly claims?: undefined; readonly reason: string };
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };

function ownResult(check: () => Claims): OwnResult {
  try {
    return { claims: JSON.parse(JSON.stringify(check())) };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.reason };
    throw error;
  }
}

const NOW = new Date(sd.now * 1000);
const transcript = Buffer.from(
  readVectors('session-transcript.json').vectors.find(({ name }: { name: string }) => name === 'spec-direct_post.jwt')
    .session_transcript_hex,
  'hex',
);

const { d, ...holderJwk } = sd.holder_private_jwk;
const holder: HolderKey = { jwk: holderJwk, privateKey: createPrivateKey({ key: { ...holderJwk, d }, format: 'jwk' }) };
const ca = await certify({ name: 'Authority, C=GB', ca: true });
const leaf = await certify({ name: 'Issuer, C=GB', by: ca, ...DOCUMENT_SIGNER });
const issuer = { key: leaf, chain: [leaf.certificate] };

const ecosystem = {
  authority: ca,
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

/** Valid presentations by name. The bytes of the vectors are fixed; the others are created with new keys. */
const findPresentation = (name: string) => sd.presentations.find((entry: { name: string }) => entry.name === name);
const SD_JWTS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['valid', 'valid, nothing disclosed', 'valid with transaction data'].map((name) => [name, findPresentation(name).presentation]),
  ),
  'with nested claims': credentialMaker(ecosystem)(),
};
const findResponse = (name: string) => mdoc.vectors.find((entry: { name: string }) => entry.name === name).device_response as string;
const MDOCS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['valid direct_post.jwt', 'valid with full-date and bytes', 'valid with device-signed elements'].map((name) => [
      name,
      findResponse(name),
    ]),
  ),
  'made here': presentMdoc(mdocBase),
};

function evaluateSdJwt({ base, text }: Pick<Mutation, 'base' | 'text'>): OwnResult {
  const { transaction_data: transactionData } = findPresentation(base) ?? {};
  return ownResult(() =>
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

function evaluateMdoc({ text }: Pick<Mutation, 'text'>): OwnResult {
  return ownResult(
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

const anchorTexts: readonly string[] = [...sd.trust_anchors, ...mdoc.trust_anchors, ca.certificate];
const anchors = anchorTexts.map((certificate) => ({ certificate }));

type EvaluatedMutation = Mutation & { readonly own: OwnResult };

const countByName = (names: readonly string[]) => {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};
const countsByCategory = (categories: readonly Category[]) =>
  Object.fromEntries(categories.map(({ explanation, count }) => [explanation, count]));

/** Whether one value contains nothing that the other does not contain. */
function isPart(partValue: unknown, wholeValue: unknown): boolean {
  if (typeof partValue !== 'object' || partValue === null || Array.isArray(partValue)) return isDeepStrictEqual(partValue, wholeValue);
  return Object.entries(partValue).every(([name, value]) => isPart(value, (wholeValue as Claims | undefined)?.[name]));
}

describe('mutated presentations', () => {
  let sdJwts: readonly EvaluatedMutation[];
  let mdocs: readonly EvaluatedMutation[];
  const validClaims = new Map<string, Claims>();

  before(async () => {
    const random = seededRandom(SEED);
    const fixed = Object.entries(SD_JWTS).filter(([name]) => findPresentation(name) !== undefined);
    sdJwts = deduplicate(
      [
        ...fixed.flatMap(([name, text]) => holderMutations({ name, text, holder }, random)),
        ...(await issuerMutations('with nested claims', ecosystem)),
      ],
      Object.values(SD_JWTS),
    ).map((entry) => ({ ...entry, own: evaluateSdJwt(entry) }));
    mdocs = deduplicate(
      [
        ...Object.entries(MDOCS)
          .filter(([name]) => name !== 'made here')
          .flatMap(([name, text]) => corruptMdocs(name, text, random)),
        ...(await signedMdocMutations('made here', mdocBase, ca)),
      ],
      Object.values(MDOCS),
    ).map((entry) => ({ ...entry, own: evaluateMdoc(entry) }));
    for (const [base, text] of Object.entries(SD_JWTS)) note(base, evaluateSdJwt({ base, text }));
    for (const [base, text] of Object.entries(MDOCS)) note(base, evaluateMdoc({ text }));
  });

  function note(base: string, { claims, reason }: OwnResult): void {
    expect(reason, base).to.equal(undefined);
    validClaims.set(base, claims ?? {});
  }

  it('are many, and the same ones each time', () => {
    expect([sdJwts.length, mdocs.length]).to.deep.equal([3864, 2887]);
    expect(sdJwts.length + mdocs.length).to.be.greaterThan(2_000);
  });

  it('are accepted if they are valid', () => {
    const harmless = [...sdJwts, ...mdocs].filter(({ nature }) => nature === 'same');
    expect(harmless.length).to.be.greaterThan(20);
    for (const { own, base, kind, description } of harmless) {
      expect(own.reason, `${base}: ${kind}, ${description}`).to.equal(undefined);
      expect(isPart(own.claims, validClaims.get(base)), `${base}: ${kind}, ${description}`).to.equal(true);
    }
  });

  it('are rejected if a signature covers the changed part', () => {
    const accepted = sdJwts.filter(({ nature, own }) => nature === 'bad' && own.claims !== undefined);
    expect(accepted.map(({ base, kind, description }) => `${base}: ${kind}, ${description}`)).to.deep.equal([]);
  });

  it('are accepted only with content of the original', () => {
    const accepted = mdocs.filter(({ nature, own }) => nature === 'bad' && own.claims !== undefined);
    for (const { own, base, kind, description } of accepted) {
      expect(isPart(own.claims, validClaims.get(base)), `${base}: ${kind}, ${description}`).to.equal(true);
    }
    expect(countByName(accepted.map(({ kind }) => kind))).to.deep.equal(HARMLESS_MDOC_MUTATIONS);
  });

  it('are evaluated like in other implementations, or the difference is explained', async function () {
    const oracles = loadOracles();
    if (oracles === undefined) return this.skip();
    const lists = { [STATUS_URI]: readVectors('derivations.json').status_list_token.compact };
    const oracleInput = { anchors: anchorTexts, seconds: sd.now };
    const [sdJwtVerdicts, mdocVerdicts] = await Promise.all([
      oracles.judgeSdJwtVcs(mutationTexts(sdJwts), { ...oracleInput, nonce: sd.expected_nonce, lists }),
      oracles.judgeMdocs(mutationTexts(mdocs), { ...oracleInput, transcript: transcript.toString('base64url') }),
    ]);
    const stricter = disagreements(sdJwts, sdJwtVerdicts, SD_JWT_STRICTER, []);
    expect(stricter).to.deep.equal(countsByCategory(SD_JWT_STRICTER));
    const mdocDisagreements = disagreements(mdocs, mdocVerdicts, MDOC_STRICTER, MDOC_LOOSER);
    expect(mdocDisagreements).to.deep.equal({ ...countsByCategory(MDOC_STRICTER), ...countsByCategory(MDOC_LOOSER) });
  });
});

const mutationTexts = (mutations: readonly EvaluatedMutation[]) => mutations.map(({ text }) => text);

/** Counts the disagreements by category. For accepted presentations both must return the same claims. */
function disagreements(
  mutations: readonly EvaluatedMutation[],
  oracleVerdicts: readonly OracleVerdict[],
  stricter: readonly Category[],
  looser: readonly Category[],
): Readonly<Record<string, number>> {
  const names = mutations.flatMap((entry, index) => {
    const { own } = entry;
    const oracleVerdict = oracleVerdicts[index];
    if (oracleVerdict === undefined) throw new Error('not evaluated');
    if (own.claims !== undefined && oracleVerdict.claims !== undefined) {
      expect(own.claims, `${entry.base}: ${entry.kind}, ${entry.description}`).to.deep.equal(oracleVerdict.claims);
    }
    if ((own.claims === undefined) === (oracleVerdict.claims === undefined)) return [];
    return [explain(own.claims === undefined ? stricter : looser, entry, own.reason)];
  });
  return countByName(names);
}
