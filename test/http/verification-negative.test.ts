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
import { expectNoConfiguration, expectOutcome, expectRefusedPresentation, expectTaken } from './negative-verification/checks.ts';
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

/** Cases are numbered; those that need a world of their own say so as `(V<row>)` in the title of their test. */
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
  'presentations in the wrong place': misplacedCases,
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
    for (const one of configurationCases) it(one.what, () => expectNoConfiguration(world, one));
  });
  for (const [title, cases] of Object.entries(RESPONSES)) {
    describe(title, () => {
      for (const one of cases) it(one.what, () => expectOutcome(world, one));
    });
  }
  for (const [title, cases] of Object.entries(PRESENTATIONS)) {
    describe(title, () => {
      for (const one of cases) it(one.what, () => expectRefusedPresentation(world, one));
    });
  }
  it('accepts a valid SD-JWT VC and driving licence with a valid status and confirmed transactions', async () => {
    const valid = { status_list: { idx: 0, uri: publish(world) } };
    await expectTaken(world, 'dc+sd-jwt', {}, (asked) => world.card(asked));
    await expectTaken(world, 'dc+sd-jwt', {}, (asked) => world.card(asked, { visible: { status: valid } }));
    const moved = { status_list: { idx: 0, uri: publishMoved(world, 3) } };
    await expectTaken(world, 'dc+sd-jwt', {}, (asked) => world.card(asked, { visible: { status: moved } }));
    await expectTaken(world, 'mso_mdoc', {}, (asked) => world.licence(asked));
    await expectTaken(world, 'mso_mdoc', {}, (asked) => world.licence(asked, { mso: (mso) => mso.set('status', valid) }));
    await expectTaken(world, 'dc+sd-jwt', THROUGH_PAGE, (asked) => world.card(asked));
    await expectTaken(world, 'mso_mdoc', THROUGH_PAGE, (asked) => world.licence(asked));
    await expectTaken(world, 'dc+sd-jwt', listedCard.configuration(world), (asked) => listedCard.present(world, asked));
    const transaction_data = [{ type: 'urn:example:payment', credential_ids: ['card'] }];
    await expectTaken(world, 'dc+sd-jwt', { transaction_data }, (asked) =>
      world.card(asked, { kb: { transaction_data_hashes: asked.payload['transaction_data'].map((text: string) => digestOf(text)) } }),
    );
  });
  describe('results', () => {
    for (const one of resultCases) it(one.what, () => expectNoResult(world, one));
  });

  describe('before an issuance', () => {
    let issuer: Issuer;
    let held: HeldCredential;
    before(async () => {
      issuer = await Issuer.open();
      held = await issuer.issueCredential();
    });
    after(() => issuer.close());
    beforeEach(() => issuer.backend.clearCalls());

    const ask = async () => {
      const wallet = issuer.wallet();
      const { uri, session } = await issuer.offer('badge');
      return { wallet, session, asked: wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'badge' })) };
    };
    const expectRefused = async (session: string, answer: Answer) => {
      expect([answer.status, answer.body?.error], answer.text).to.deep.equal([400, 'access_denied']);
      expect(JSON.stringify(await issuer.session(session))).to.not.include('Ada');
      expect(issuer.backend.calls, 'the backend').to.deep.equal([]);
    };

    // V154
    it('the nonce of another auth_session', async () => {
      const [{ wallet, asked, session }, other] = [await ask(), await ask()];
      const answer = await wallet.present(asked, held, { nonce: other.asked.request.nonce });
      await expectRefused(session, answer);
      wallet.expectCode(await other.wallet.present(other.asked, held));
    });

    for (const audience of ['', 'origin:', 'iae:']) {
      // V155
      it(`an audience with the prefix "${audience}"`, async () => {
        const { wallet, asked, session } = await ask();
        const aud = audience + new URL(issuer.service.address).origin;
        await expectRefused(session, await wallet.present(asked, held, { aud }));
      });
    }
  });

  it('have a test for each numbered case', () => {
    const tables = [...Object.values(RESPONSES), ...Object.values(PRESENTATIONS), configurationCases, resultCases];
    const titles = globSync('test/{http,deep,unit/verification}/*.test.ts', { cwd: ROOT }).map((file) =>
      readFileSync(`${ROOT}${file}`, 'utf8'),
    );
    const marked = titles.flatMap((text) => [...text.matchAll(/\/\/ V(\d+)$/gm)].map(([, row]) => Number(row)));
    const tested = new Set([...tables.flat().map(({ row }) => row), ...marked]);
    const rows = Array.from({ length: LAST_ROW }, (_, index) => index + 1);
    expect(rows.filter((row) => !tested.has(row))).to.deep.equal([]);
  });
});
