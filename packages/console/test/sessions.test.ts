import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { REFUSAL_REFERENCE, SESSION_FAILURE_REFERENCE } from '../../../domain/shared/error-reference.ts';
import { REFUSAL_REASONS } from '../../../domain/shared/refusal.ts';
import { SESSION_FAILURE_CODES } from '../../../domain/shared/session-failure.ts';
import { causeOf, meaningOf, originOf, titleOf } from '../src/pages/sessions/causes.ts';
import { readCertificate } from '../src/pages/sessions/certificate.ts';
import { cureOf, FAILURE_PLACES, PLACED_REASONS } from '../src/pages/sessions/cures.ts';
import { explainFailure, explainReason } from '../src/pages/sessions/explanations.ts';
import { queryInWords } from '../src/pages/sessions/query-in-words.ts';
import type { Check } from '../src/pages/sessions/session-record.ts';
import { hostOfLink, mayBeReached } from '../src/parts/public-address.ts';

const failed = (check: string, reason: string, id?: string): Check => ({
  ...{ check, reason, result: 'failed', section: 'somewhere' },
  ...(id !== undefined && { id }),
});

describe('the advice of the console after a failure', () => {
  const changed = failed('elements', 'digest_mismatch', 'licence');
  const missing = failed('response', 'missing licence');

  it('blames the rejected presentation for a missing credential', () => {
    expect(originOf(missing, [changed, missing])).to.equal(changed);
    expect(originOf(changed, [changed, missing])).to.equal(undefined);
    expect(titleOf(changed)).to.equal('licence: elements');
  });

  it('blames the first failed check for an incomplete set and a repeated reason', () => {
    const set = failed('response', 'missing credential_sets[0]');
    const [nonce, again] = [failed('nonce', 'nonce_mismatch', 'a'), failed('response', 'nonce_mismatch')];
    expect(originOf(set, [changed, set])).to.equal(changed);
    expect(originOf(again, [nonce, again])).to.equal(nonce);
  });

  it('blames nothing else for a query without any presentation', () => {
    const other = failed('response', 'missing diploma');
    expect(originOf(other, [changed, other])).to.equal(undefined);
    expect(causeOf('missing diploma')).to.equal('No valid presentation for the required query “diploma”');
    expect(cureOf('missing diploma')).to.deep.include({ at: 'question', what: REFUSAL_REFERENCE.missing_claim.fix });
  });

  it('does not advise to issue again after data was changed in transit', () => {
    for (const reason of ['digest_mismatch', 'unreferenced_disclosure', 'issuer_signature'])
      expect(cureOf(reason).what).to.match(/^Do not accept it/);
  });
});

describe('the reachability of a link for phones', () => {
  const offer = (address: string) => `openid-credential-offer://?credential_offer_uri=${encodeURIComponent(`${address}/offer/1`)}`;
  const judged = (link: string) => {
    const address = hostOfLink(link);
    return address !== undefined && mayBeReached(address);
  };
  it('depends on the address in the link', () => {
    expect(judged(offer('https://id.example'))).to.equal(true);
    expect(judged('openid4vp://?client_id=x&request_uri=https%3A%2F%2F203.0.113.7%2Fr')).to.equal(true);
    expect(judged(offer('https://[2001:db8::1]'))).to.equal(true);
    const inner = ['localhost', '127.0.0.1', '10.1.2.3', '172.20.0.1', '192.168.1.9', '100.64.0.1', '[::1]', '[fd00::1]'];
    for (const host of inner) expect(judged(offer(`https://${host}:3000`)), host).to.equal(false);
    expect(judged(offer('http://id.example'))).to.equal(false);
    expect(judged('nonsense')).to.equal(false);
  });
});

describe('the decoder of the console', () => {
  it('describes a query in words', () => {
    const credentials = [
      {
        id: 'pid',
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:a', 'urn:b'] },
        claims: [{ path: ['family_name'] }, { path: ['addresses', null, 'city'], values: ['Gent', 'Brugge'] }, { path: ['degree'] }],
      },
      { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } },
    ];
    const credential_sets = [{ options: [['pid', 'mdl'], ['mdl']], required: false }];
    expect(queryInWords({ credentials, credential_sets })).to.deep.equal([
      'Asks for family name, addresses › each › city that is Gent or Brugge and degree of urn:a or urn:b (pid).',
      'Asks for no more than that it is held of org.iso.18013.5.1.mDL (mdl).',
      'Not required: pid and mdl, or mdl will do.',
    ]);
    for (const odd of [undefined, null, 'x', [], { credentials: 7 }]) expect(queryInWords(odd)).to.deep.equal([]);
  });

  it('returns undefined for bytes that are no certificate', () => {
    const encoded = (...bytes: number[]) => Buffer.from(bytes).toString('base64');
    const odd = [undefined, 7, '', '%', encoded(0x30), encoded(0x30, 0x80), encoded(0x30, 0x84, 255, 255, 255, 255)];
    const long = 'A'.repeat(1_000_000);
    for (const text of [...odd, encoded(0x30, 0x02, 0x30, 0x00), long])
      expect(readCertificate(text), String(text).slice(0, 20)).to.equal(undefined);
  });
});

const section = (file: string, title: string) =>
  readFileSync(new URL(`../../../docs/reference/${file}.md`, import.meta.url), 'utf8')
    .split(`## ${title}`)[1]
    ?.split('\n## ')[0] ?? '';

describe('the texts of the console about failures', () => {
  it('are those of the error reference, without backticks', () => {
    const plain = (text: string) => text.replaceAll('`', '');
    for (const code of SESSION_FAILURE_CODES) {
      const { meaning, cause, fix } = SESSION_FAILURE_REFERENCE[code];
      expect(explainFailure(code), code).to.deep.equal({ meaning: plain(meaning), cause: plain(cause), fix: plain(fix) });
    }
    for (const reason of REFUSAL_REASONS) {
      const { meaning, cause, fix } = REFUSAL_REFERENCE[reason];
      expect([meaningOf(reason), causeOf(reason), cureOf(reason).what], reason).to.deep.equal([
        plain(meaning),
        plain(cause || meaning),
        plain(fix),
      ]);
    }
  });

  it('are absent for unknown codes, whose reason is shown as it is', () => {
    for (const code of ['unknown', 'toString', '']) expect(explainFailure(code) ?? explainReason(code), code).to.equal(undefined);
    expect([meaningOf('unknown'), causeOf('unknown')]).to.deep.equal(['unknown', 'unknown']);
  });

  it('refer to existing sections, reasons and codes', () => {
    const reasons: readonly string[] = REFUSAL_REASONS;
    expect(PLACED_REASONS.filter((reason) => !reasons.includes(reason))).to.deep.equal([]);
    const codes: readonly string[] = SESSION_FAILURE_CODES;
    expect(Object.keys(FAILURE_PLACES).filter((code) => !codes.includes(code))).to.deep.equal([]);
    const pages = [...reasons.map(cureOf), ...Object.values(FAILURE_PLACES)].flatMap(({ page }) => (page === undefined ? [] : [page]));
    expect(pages).to.have.length.greaterThan(10);
    expect(pages.filter(({ file, section: title }) => section(file, title) === '')).to.deep.equal([]);
  });
});
