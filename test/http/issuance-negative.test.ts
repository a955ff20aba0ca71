import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Answer } from '../support/test-service.ts';
import { attestationCases } from './negative/attestation.cases.ts';
import { credentialCases } from './negative/credential.cases.ts';
import { deferredCases } from './negative/deferred.cases.ts';
import { requestCases } from './negative/request.cases.ts';
import { resourceCases } from './negative/resource.cases.ts';
import { tokenCases } from './negative/token.cases.ts';
import { type Case, type Expected, openWorld, type World } from './negative/world.ts';

/** Cases are numbered. A case that is not in a table has `issuance N<row>` in a comment above its test. */
const LAST_ROW = 146;

const TABLES: Readonly<Record<string, readonly Case[]>> = {
  'offers, metadata and authorization requests': requestCases,
  'the token endpoint': tokenCases,
  'client attestations': attestationCases,
  'access tokens, proofs and nonces': resourceCases,
  'the credential endpoint': credentialCases,
  'deferred credentials and notifications': deferredCases,
};

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('requests that an issuer must reject', () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world?.close());

  for (const [title, cases] of Object.entries(TABLES)) {
    describe(title, () => {
      for (const { title, run, expected } of cases) {
        it(title, async () => expectAnswer(await run(world), expected));
      }
    });
  }

  it('have a test for each numbered case', () => {
    const sources = globSync('test/{http,deep,unit/issuance}/*.test.ts', { cwd: ROOT }).map((file) =>
      readFileSync(`${ROOT}${file}`, 'utf8'),
    );
    const comments = sources.flatMap((text) => [...text.matchAll(/\/\/ issuance (N\d+(?:, N\d+)*)/g)].map(([, rows = '']) => rows));
    const rowsInComments = comments.flatMap((rows) => rows.split(', ').map((row) => Number(row.slice(1))));
    const testedRows = new Set([
      ...Object.values(TABLES)
        .flat()
        .map(({ row }) => row),
      ...rowsInComments,
    ]);
    const untestedRows = Array.from({ length: LAST_ROW }, (_, index) => index + 1).filter((row) => !testedRows.has(row));
    expect(untestedRows).to.deep.equal([]);
  });
});

function expectAnswer(answer: Answer, expected: Expected): void {
  const { status, headers, text, body } = answer;
  if ('page' in expected) {
    expect(status, text).to.equal(expected.page);
    expect(headers.get('content-type')).to.include('text/html');
    expect(headers.get('location')).to.equal(null);
    return;
  }
  if ('redirected' in expected) {
    expect(status, text).to.equal(303);
    const { searchParams } = new URL(headers.get('location') ?? '');
    expect(searchParams.get('error')).to.equal(expected.redirected);
    expect(searchParams.has('iss') && searchParams.has('state')).to.equal(true);
    expect(searchParams.has('code')).to.equal(false);
    return;
  }
  expect(status, text).to.equal(expected.status);
  if (expected.error !== undefined) {
    expect(body?.error, text).to.equal(expected.error);
    expect(headers.get('content-type')).to.equal('application/json');
    expect(headers.get('cache-control')).to.include('no-store');
    // RFC 6749 section 5.2
    expect(body.error_description ?? '').to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/);
  }
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    expect(headers.get(name) ?? '', name).to.match(value);
  }
}
