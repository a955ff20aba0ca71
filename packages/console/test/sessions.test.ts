import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { REFUSAL_REASONS } from '../../../domain/shared/refusal.ts';
import { SESSION_FAILURE_CODES } from '../../../domain/shared/session-failure.ts';
import { causeOf, originOf, titleOf } from '../src/pages/sessions/causes.ts';
import { readCertificate } from '../src/pages/sessions/certificate.ts';
import { CURED_REASONS, cureOf, FAILURE_PLACES } from '../src/pages/sessions/cures.ts';
import { FAILURES, REASONS } from '../src/pages/sessions/explanations.ts';
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
    expect(causeOf('missing diploma')).to.equal('no good presentation came for “diploma”, which the question requires');
    expect(cureOf('missing diploma').at, 'the question asks for what the wallet has not').to.equal('question');
  });

  it('does not advise to issue again after data was changed in transit', () => {
    for (const reason of ['digest_mismatch', 'unreferenced_disclosure', 'issuer_signature'])
      expect(cureOf(reason).what).to.match(/^Do not go by it/);
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
  readFileSync(new URL(`../../../docs/${file}`, import.meta.url), 'utf8')
    .split(`## ${title}`)[1]
    ?.split('\n## ')[0] ?? '';
const plain = (text: string) =>
  text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .trim();

describe('the texts of the console about failures', () => {
  it('cover every failure code and refusal reason', () => {
    expect(SESSION_FAILURE_CODES.filter((code) => FAILURES[code] === undefined)).to.deep.equal([]);
    expect(REFUSAL_REASONS.filter((reason) => REASONS[reason] === undefined)).to.deep.equal([]);
  });

  it('equal those of the documentation', () => {
    const rows = section('reference/troubleshooting.md', 'A session failed').matchAll(/^\| `(\w+)` \| \w+ \| (.*?) \| (.*?) \|$/gm);
    const failures = [...rows].map(([, code = '', cause = '', cure = '']) => [code, [plain(cause), plain(cure)]]);
    expect(FAILURES).to.deep.equal(Object.fromEntries(failures));
    const reasons = section('reference/verifying.md', 'Why a presentation is refused').matchAll(/^\| (`.*?) \| (.*?) \|$/gm);
    const meant = [...reasons].flatMap(([, names = '', meaning = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, plain(meaning)]),
    );
    expect(REASONS).to.deep.equal(Object.fromEntries(meant));
  });

  it('refer to existing sections, reasons and codes', () => {
    const reasons: readonly string[] = REFUSAL_REASONS;
    expect(CURED_REASONS.filter((reason) => !reasons.includes(reason))).to.deep.equal([]);
    const codes: readonly string[] = SESSION_FAILURE_CODES;
    expect(Object.keys(FAILURE_PLACES).filter((code) => !codes.includes(code))).to.deep.equal([]);
    const cures = [...reasons.map(cureOf), ...Object.values(FAILURE_PLACES)];
    const sections = cures.flatMap(({ section: title }) => (title === undefined ? [] : [title]));
    expect(sections.filter((title) => section('reference/troubleshooting.md', title) === '')).to.deep.equal([]);
  });
});
