import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Issuer } from '../support/interactive-authorization.ts';
import type { HeldCredential } from '../support/present.ts';
import { digestOf } from '../support/sd-jwt-maker.ts';
import type { Answer } from '../support/test-service.ts';
import {
  encryptionCases,
  misplacedCases,
  transactionDataCases,
  transactionDataResponseCases,
  vpTokenCases,
} from './negative-verification/answers.cases.ts';
import { expectAccepted, expectNoConfiguration, expectOutcome, expectRejectedPresentation } from './negative-verification/checks.ts';
import { configurationCases } from './negative-verification/configuration.cases.ts';
import { envelopeCases } from './negative-verification/envelope.cases.ts';
import { mdocCases } from './negative-verification/mdoc.cases.ts';
import {
  expectNoResult,
  pagePresentationCases,
  pageResponseCases,
  requestCases,
  resultCases,
} from './negative-verification/requests.cases.ts';
import { sdJwtCases } from './negative-verification/sd-jwt.cases.ts';
import { publish, publishMoved, statusCases } from './negative-verification/status.cases.ts';
import { listedCard, trustCases } from './negative-verification/trust.cases.ts';
import { type Case, openWorld, type PresentationCase, THROUGH_PAGE, type World } from './negative-verification/world.ts';

/** Cases are numbered. A case that is not in a table has `V<row>` in a comment above its test. */
const LAST_ROW = 155;

const RESPONSES: Readonly<Record<string, readonly Case[]>> = {
  'fetching a request': requestCases,
  'the envelope of a response': envelopeCases,
  'the encryption of a response': encryptionCases,
  'the shape of vp_token': vpTokenCases,
  'transaction data of several credentials': transactionDataResponseCases,
  'responses of pages': pageResponseCases,
};
const PRESENTATIONS: Readonly<Record<string, readonly PresentationCase[]>> = {
  'presentations under the wrong query': misplacedCases,
  'SD-JWT VCs and their key binding': sdJwtCases,
  mdocs: mdocCases,
  'transaction data': transactionDataCases,
  trust: trustCases,
  status: statusCases,
  'presentations through pages': pagePresentationCases,
};

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('presentations that a verifier must reject', () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world?.close());

  describe('configurations and requests', () => {
    for (const one of configurationCases) it(one.title, () => expectNoConfiguration(world, one));
  });
  for (const [title, cases] of Object.entries(RESPONSES)) {
    describe(title, () => {
      for (const one of cases) it(one.title, () => expectOutcome(world, one));
    });
  }
  for (const [title, cases] of Object.entries(PRESENTATIONS)) {
    describe(title, () => {
      for (const one of cases) it(one.title, () => expectRejectedPresentation(world, one));
    });
  }
  it('accepts a valid SD-JWT VC and driving licence with a valid status and confirmed transactions', async () => {
    const valid = { status_list: { idx: 0, uri: publish(world) } };
    await expectAccepted(world, 'dc+sd-jwt', {}, (request) => world.card(request));
    await expectAccepted(world, 'dc+sd-jwt', {}, (request) => world.card(request, { visible: { status: valid } }));
    const movedStatus = { status_list: { idx: 0, uri: publishMoved(world, 3) } };
    await expectAccepted(world, 'dc+sd-jwt', {}, (request) => world.card(request, { visible: { status: movedStatus } }));
    await expectAccepted(world, 'mso_mdoc', {}, (request) => world.licence(request));
    await expectAccepted(world, 'mso_mdoc', {}, (request) => world.licence(request, { mso: (mso) => mso.set('status', valid) }));
    await expectAccepted(world, 'dc+sd-jwt', THROUGH_PAGE, (request) => world.card(request));
    await expectAccepted(world, 'mso_mdoc', THROUGH_PAGE, (request) => world.licence(request));
    await expectAccepted(world, 'dc+sd-jwt', listedCard.configuration(world), (request) => listedCard.present(world, request));
    const transaction_data = [{ type: 'urn:example:payment', credential_ids: ['card'] }];
    await expectAccepted(world, 'dc+sd-jwt', { transaction_data }, (request) =>
      world.card(request, { kb: { transaction_data_hashes: request.payload['transaction_data'].map((text: string) => digestOf(text)) } }),
    );
  });
  describe('results', () => {
    for (const one of resultCases) it(one.title, () => expectNoResult(world, one));
  });

  describe('before an issuance', () => {
    let issuer: Issuer;
    let heldCredential: HeldCredential;
    before(async () => {
      issuer = await Issuer.open();
      heldCredential = await issuer.issueCredential();
    });
    after(() => issuer.close());
    beforeEach(() => issuer.backend.clearCalls());

    const beginAuthorization = async () => {
      const wallet = issuer.wallet();
      const { uri, session } = await issuer.offer('badge');
      return { wallet, session, request: wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' })) };
    };
    const expectRejected = async (session: string, answer: Answer) => {
      expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, 'access_denied']);
      expect(JSON.stringify(await issuer.session(session))).to.not.include('Ada');
      expect(issuer.backend.calls, 'the backend').to.deep.equal([]);
    };

    // V154
    it('the nonce of another auth_session', async () => {
      const [{ wallet, request, session }, otherAuthorization] = [await beginAuthorization(), await beginAuthorization()];
      const answer = await wallet.present(request, heldCredential, { nonce: otherAuthorization.request.request.nonce });
      await expectRejected(session, answer);
      wallet.expectCode(await otherAuthorization.wallet.present(otherAuthorization.request, heldCredential));
    });

    for (const audience of ['', 'origin:', 'iae:']) {
      // V155
      it(`an audience with the prefix "${audience}"`, async () => {
        const { wallet, request, session } = await beginAuthorization();
        const aud = audience + new URL(issuer.service.address).origin;
        await expectRejected(session, await wallet.present(request, heldCredential, { aud }));
      });
    }
  });

  it('have a test for each numbered case', () => {
    const tables = [...Object.values(RESPONSES), ...Object.values(PRESENTATIONS), configurationCases, resultCases];
    const sources = globSync('test/{http,deep,unit/verification}/*.test.ts', { cwd: ROOT }).map((file) =>
      readFileSync(`${ROOT}${file}`, 'utf8'),
    );
    const rowsInComments = sources.flatMap((text) => [...text.matchAll(/\/\/ V(\d+)$/gm)].map(([, row]) => Number(row)));
    const testedRows = new Set([...tables.flat().map(({ row }) => row), ...rowsInComments]);
    const rows = Array.from({ length: LAST_ROW }, (_, index) => index + 1);
    expect(rows.filter((row) => !testedRows.has(row))).to.deep.equal([]);
  });
});
