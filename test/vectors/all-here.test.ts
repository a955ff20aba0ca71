import { globSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/**
 * Cases by file and section. Tests walk a section as a whole, so a section that loses cases would go unnoticed;
 * and one that is new has to be walked by some test before it may stand here.
 */
const CASES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'dcql.json': { grammar: 59, paths: 45, responses: 85 },
  'derivations.json': { aki: 1, transaction_data: 2 },
  'encrypted-response.json': { vectors: 11 },
  'mdoc.json': { vectors: 43 },
  'sd-jwt-vc.json': { disclosures: 43, presentations: 55 },
  'session-transcript.json': { vectors: 9, must_not_equal: 8 },
  'status-list.json': {
    encoding: 11,
    writes: 9,
    invalid_lists: 16,
    status_policy: 7,
    token_checks: 15,
    cache_checks: 6,
    // For clients that resolve past states; this verifier never does.
    historical_checks: 5,
  },
};

/** Properties that are no lists of cases: keys, certificates, times, and single examples. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  'dcql.json': ['about', 'credentials'],
  'derivations.json': ['now', 'access_certificate', 'status_list_token'],
  'encrypted-response.json': ['about'],
  'mdoc.json': ['about', 'now', 'docType', 'trust_anchors', 'device_private_jwk'],
  'sd-jwt-vc.json': [
    ...['about', 'now', 'max_depth', 'kb_iat_window_seconds', 'expected_aud', 'expected_nonce'],
    ...['requested_vct', 'trust_anchors', 'holder_private_jwk'],
  ],
  // The session info belongs to the encryption of OpenID4VP 1.1, which 1.0 does not know.
  'session-transcript.json': ['about', 'jwk_thumbprint', 'device_authentication', 'hpke_session_info'],
  'status-list.json': ['about', 'now', 'tokens'],
};

describe('test vectors', () => {
  for (const name of globSync('*.json', { cwd: import.meta.dirname })) {
    it(`of ${name} are complete`, () => {
      const file = JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as Record<string, unknown>;
      const otherFiles = OTHERS[name] ?? [];
      const sections = Object.entries(file).filter(([section]) => !otherFiles.includes(section));
      const counts = sections.map(([section, cases]) => [section, (cases as readonly unknown[]).length]);
      expect(Object.fromEntries(counts)).to.deep.equal(CASES[name]);
      expect(Object.keys(file)).to.include.members([...otherFiles]);
    });
  }

  it('have no unexpected file', () => {
    expect(globSync('*.json', { cwd: import.meta.dirname }).sort()).to.deep.equal(Object.keys(CASES).sort());
  });
});
