import { expect } from 'chai';
import { presentMdoc } from '../support/mdoc-maker.ts';
import { newKey } from '../support/raw-wallet.ts';
import { makeSdJwt, type SdJwtBase } from '../support/sd-jwt-maker.ts';
import { type Certified, certify, pem } from '../support/test-certificates.ts';
import { expectAccessible, expectFits } from './support/accessible.ts';
import { comesToBe } from './support/keyboard.ts';
import { button, CARD, MANAGER, makeQuestion, NAMESPACE } from './support/questions.ts';
import { Visitors } from './support/visitors.ts';

describe('a question that is tried in the console', function () {
  this.timeout(60_000);
  let visitors: Visitors;
  let signer: Certified;

  before(async function () {
    const started = await Visitors.start();
    if (started === undefined) return this.skip();
    visitors = started;
    const ca = await certify({ name: 'Authority of others', ca: true });
    signer = await certify({ name: 'Signer of others', by: ca });
    await makeQuestion(visitors, 'tried', { trustAnchors: [{ certificate: pem(ca) }] });
  });
  after(() => visitors?.served.close());
  afterEach(async () => expect(await visitors.leave()).to.deep.equal([]));

  const base = (more: Partial<SdJwtBase> = {}): SdJwtBase => ({
    issuer: { key: signer, chain: [signer.certificate] },
    holder: newKey(),
    visible: { vct: CARD },
    hidden: { name: 'Erika Secret' },
    audience: 'nobody',
    nonce: 'none',
    now: Math.floor(Date.now() / 1000),
    ...more,
  });
  it('says which queries are answered, by whom, and what nobody looked at', async () => {
    const page = await visitors.as(MANAGER, 'questions/tried');
    const dry = page.getByRole('region', { name: 'Dry run' });
    const attempt = async (text: string) => {
      await dry.getByRole('textbox').fill(text);
      await button(page, 'Hold it against the question').click();
    };
    await attempt(makeSdJwt(base()));
    await dry.getByText('It would answer “card”.').waitFor();
    await dry.getByText('would still lack plastic').waitFor();
    await dry.getByText(/Not looked at, .*nonce, audience.*key binding/).waitFor();
    await dry.getByRole('list', { name: 'Checks for card' }).getByText('issuer trust').click();
    await dry.getByText(/Signer of others/).waitFor();
    await expectAccessible(page, 'tried');
    await attempt(makeSdJwt(base(), { show: ([one = '']) => [`${one.slice(0, -3)}AAA`] }));
    await dry.getByText('It would not answer “card”:').waitFor();
    const stranger = await certify({ name: 'Stranger' });
    await attempt(makeSdJwt(base({ issuer: { key: stranger, chain: [stranger.certificate] } })));
    await dry.getByText('no anchor vouches for the certificate').waitFor();
    await dry.getByText('Add the authority of the issuer to the trust anchors').waitFor();
    await attempt(makeSdJwt(base({ hidden: {} })));
    await dry.getByText('Missing: name.').waitFor();
    await attempt(
      presentMdoc({
        issuer: { key: signer, chain: [signer.certificate] },
        holder: newKey(),
        docType: 'org.example.card.1',
        elements: { [NAMESPACE]: { name: 'Erika Secret' } },
        transcript: Buffer.from([0x80]),
        now: Math.floor(Date.now() / 1000),
      }),
    );
    await dry.getByText('It would answer “plastic”.').waitFor();
    await attempt('nonsense');
    await dry.getByRole('alert').getByText('neither an SD-JWT VC nor an mdoc').first().waitFor();
    await page.getByRole('button', { name: /^Calls/ }).click();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const call = page.getByRole('complementary').getByRole('listitem').filter({ hasText: '/try' }).first();
    await call.getByRole('button', { name: 'Copy as curl' }).click();
    await comesToBe(
      page,
      `navigator.clipboard.readText().then((text) => text.includes('"presentation":"…"'))`,
      'the call stands in the clipboard, without what was presented',
    );
  });

  it('is decoded in the window alone by those who may not try it, and fits a phone in the dark', async () => {
    const look = { width: 390, dark: true };
    const page = await visitors.as(['presentation:request'], 'questions/tried', look);
    const dry = page.getByRole('region', { name: 'Dry run' });
    await dry.getByRole('textbox').fill(makeSdJwt(base()));
    await button(page, 'Hold it against the question').click();
    await dry.getByText('It would answer “card”.').waitFor();
    await dry.getByText('Signatures, status, validity and holder are not checked.').waitFor();
    expect(await page.getByLabel('Trust also').count()).to.equal(0);
    await expectFits(page, 'a question at 390 px');
    await expectAccessible(page, 'a question in the dark');
  });
});
