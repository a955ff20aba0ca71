import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { compileQuery } from '../../domain/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/dcql/match.ts';
import { selectClaims, selectElement } from '../../domain/dcql/path.ts';
import { DcqlQuery } from '../../domain/dcql/query.ts';
import { findMissingAnswers, parseVpToken } from '../../domain/dcql/vp-token.ts';
import { Refusal } from '../../domain/shared/refusal.ts';

type Presentation = {
  readonly format: string;
  readonly vct?: string;
  readonly docType?: string;
  readonly aka_vcts?: readonly string[];
  readonly extends_chain?: readonly string[];
  readonly holder_bound: boolean;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly crypto_error?: string;
  readonly chain_akis?: readonly string[];
  readonly trust_lists?: readonly string[];
  readonly federation_path?: readonly string[];
};

type Outcome = {
  readonly accepted: boolean;
  readonly error?: string;
  readonly missing?: readonly string[];
  readonly credential_set?: number;
  readonly presentations?: Readonly<Record<string, readonly number[]>>;
  readonly rejected?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly ignored?: readonly string[];
};

type Vectors = {
  readonly credentials: Readonly<Record<string, unknown>>;
  readonly grammar: readonly { name: string; dcql_query: unknown; valid: boolean; error?: string }[];
  readonly paths: readonly {
    name: string;
    kind: 'json' | 'mdoc';
    credential: string;
    path: readonly unknown[];
    selected?: readonly unknown[];
    error?: string;
  }[];
  readonly responses: readonly { name: string; dcql_query: unknown; vp_token: unknown; expected: Outcome }[];
};

const vectors = JSON.parse(readFileSync(new URL('./dcql.json', import.meta.url), 'utf8')) as Vectors;

function isUndisclosed(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '$undisclosed');
}

describe('DCQL vectors', () => {
  it('are complete', () => {
    expect([vectors.grammar.length, vectors.paths.length, vectors.responses.length]).to.deep.equal([59, 45, 85]);
  });

  describe('grammar', () => {
    for (const { name, dcql_query, valid, error } of vectors.grammar) {
      it(name, () => {
        const parsedQuery = DcqlQuery.safeParse(dcql_query);
        expect(parsedQuery.success).to.equal(valid);
        if (parsedQuery.success) expect(parsedQuery.data).to.deep.equal(dcql_query);
        else expect(violatedRule(parsedQuery.error.issues[0])).to.equal(error);
      });
    }
  });

  describe('paths', () => {
    for (const { name, kind, credential, path, selected, error } of vectors.paths) {
      it(name, () => {
        const root = vectors.credentials[credential];
        const result = kind === 'mdoc' ? selectElement(root, path) : selectClaims(root, path, isUndisclosed);
        expect(result).to.deep.equal(selected ?? error);
      });
    }
  });

  describe('responses', () => {
    for (const { name, dcql_query, vp_token, expected } of vectors.responses) {
      it(name, () => {
        expect(evaluate(dcql_query, vp_token)).to.deep.equal(expected);
      });
    }
  });
});

/** The rule that an issue names, or else the innermost property of its path with a rule. */
function violatedRule(issue: { path: PropertyKey[]; params?: unknown } | undefined): unknown {
  const params = issue?.params as { rule?: unknown } | undefined;
  if (params?.rule !== undefined) return params.rule;
  const names = (issue?.path ?? []).filter((step) => typeof step === 'string');
  if (names.includes('trusted_authorities')) return 'trusted_authorities';
  return names.at(-1) === 'id' && names.at(-2) === 'claims' ? 'claim_id' : names.at(-1);
}

/** Plays section 7 of the evaluation with the checks that the vectors call already done. */
function evaluate(dcqlQuery: unknown, vpToken: unknown): Outcome {
  const query = compileQuery(DcqlQuery.parse(dcqlQuery));
  let tokens: Map<string, readonly string[]>;
  try {
    tokens = parseVpToken(toWireFormat(vpToken), query);
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'malformed') throw error;
    return { accepted: false, error: error.message.split(/[: ]+/)[1] ?? '' };
  }

  const presentations: Record<string, number[]> = {};
  const rejections: Record<string, Record<string, string>> = {};
  const ignored = [...tokens.keys()].filter((id) => !query.requested.has(id));
  for (const [id, list] of tokens) {
    const credentialQuery = query.credentials.get(id);
    if (credentialQuery === undefined) throw new Error('the shape was checked');
    for (const [i, text] of list.entries()) {
      const presentation = JSON.parse(text) as Presentation;
      if (presentation.crypto_error === 'nonce_mismatch') return { accepted: false, error: 'nonce_mismatch' };
      if (ignored.includes(id)) continue;
      const result = matchCredential(credentialQuery, toCredential(presentation), isUndisclosed);
      const reason = presentation.crypto_error ?? (result.matched ? undefined : result.reason);
      if (reason === undefined) presentations[id] = [...(presentations[id] ?? []), i];
      else rejections[id] = { ...rejections[id], [i]: reason };
    }
  }

  const missingIds = findMissingAnswers(query, new Set(Object.keys(presentations)));
  const firstMissing = missingIds[0];
  if (firstMissing === undefined) {
    return { accepted: true, presentations, rejected: rejections, ...(ignored.length > 0 && { ignored }) };
  }
  if (firstMissing.kind === 'credential_set') {
    return { accepted: false, error: 'credential_set_unsatisfied', credential_set: firstMissing.index, rejected: rejections };
  }
  const ids = missingIds.flatMap((m) => (m.kind === 'credential' ? [m.id] : []));
  return { accepted: false, error: 'credential_missing', missing: ids, rejected: rejections };
}

/** The vectors show presentations opened; on the wire each is a string. */
function toWireFormat(vpToken: unknown): unknown {
  if (typeof vpToken !== 'object' || vpToken === null || Array.isArray(vpToken)) return vpToken;
  const entries = Object.entries(vpToken).map(([id, list]: [string, unknown]) => [
    id,
    Array.isArray(list) ? list.map((presentation) => JSON.stringify(presentation)) : list,
  ]);
  return Object.fromEntries(entries);
}

function toCredential(presentation: Presentation): PresentedCredential {
  const { format, vct, docType, aka_vcts, extends_chain, holder_bound, claims } = presentation;
  const names = [vct, docType].filter((type) => type !== undefined);
  return {
    format,
    types: [...names, ...(aka_vcts ?? []), ...(extends_chain ?? [])],
    holderBound: holder_bound,
    claims,
    alwaysVisible: {},
    authority: {
      authorityKeyIds: presentation.chain_akis ?? [],
      trustListUris: presentation.trust_lists ?? [],
      federationEntityIds: presentation.federation_path ?? [],
    },
  };
}
