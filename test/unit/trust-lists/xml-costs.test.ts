import { expect } from 'chai';
import { INLINE_LIMITS, XmlCryptoDocuments } from '../../../adapters/xml/signed-xml-documents.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';
import { signXml, xmlList } from '../../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const MARK = '<tsl:TrustServiceProviderList>';

/** Milliseconds that this thread computes. */
function computed(): number {
  // What the thread says of itself is brought up to date with the process.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

describe('What a list in XML may cost the thread that serves everybody', () => {
  const documents = new XmlCryptoDocuments();
  let operator: Certified;
  let stranger: Certified;
  let good: string;

  before(async () => {
    operator = await certify({ name: 'Operator' });
    stranger = await certify({ name: 'Stranger' });
    good = signXml(xmlList(), operator);
  });

  const read = async (text: string) => {
    const begin = computed();
    const result = await documents.trustedList(Buffer.from(text), [operator.certificate], NOW).then(
      () => 'taken',
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.message;
        throw error;
      },
    );
    return { result, ms: computed() - begin };
  };
  /** Elements within elements that each declare namespaces. */
  const scoped = (levels: number, ofEach: number, elements: number) => {
    const declared = (level: number) =>
      Array.from({ length: ofEach }, (_, at) => ` xmlns:p${level}-${at}="u${level}-${at}"`).join('');
    const open = Array.from({ length: levels }, (_, level) => `<a${declared(level)}>`).join('');
    return `${open}${'<b/>'.repeat(elements)}${'</a>'.repeat(levels)}`;
  };
  const put = (inner: string, text = good) => text.replace(MARK, inner + MARK);

  it('is not more for namespaces that are in scope of many elements', async () => {
    expect((await read(put(scoped(36, 1, 100)))).result).to.equal('signature');
    for (const [levels, ofEach] of [
      [36, 1],
      [36, 5],
      [1, 180],
    ] as const) {
      const { result, ms } = await read(put(scoped(levels, ofEach, 19_000)));
      expect(result).to.equal('malformed: too large');
      expect(ms).to.be.lessThan(1_000);
    }
  });

  it('is the same for a signed list: what would cost too much is refused', async () => {
    const list = xmlList();
    expect((await read(signXml(put(scoped(10, 1, 1_000), list), operator))).result).to.equal('taken');
    const { result } = await read(signXml(put(scoped(30, 1, 7_000), list), operator));
    expect(result).to.equal('malformed: too large');
  });

  it('is nothing of a canonical form where the signature is of nobody pinned', async () => {
    const inner = scoped(5, 8, 1_000) + scoped(5, 8, 3_000);
    const borrowed = signXml(put(inner, xmlList()), stranger, { shown: operator.certificate });
    const [mine, of] = [await read(signXml(put(inner, xmlList()), operator)), await read(borrowed)];
    expect([mine.result, of.result]).to.deep.equal(['taken', 'signature']);
    expect(of.ms).to.be.lessThan(mine.ms / 2);
  });

  it('is nothing for declarations without end, which are told before the text is parsed', async () => {
    const many = Array.from({ length: 8_000 }, (_, at) => ` xmlns:p${at}=""`).join('');
    const { result, ms } = await read(put(`<a${many}>${'<b xmlns:q=""/>'.repeat(6_000)}</a>`));
    expect(result).to.equal('malformed: too large');
    expect(ms).to.be.lessThan(100);
  });

  it('is bounded by how many stand beside each other', async () => {
    const { result, ms } = await read(put(`<a>${'<b/>'.repeat(INLINE_LIMITS.elements - 100)}</a>`));
    expect(result).to.equal('malformed: too large');
    expect(ms).to.be.lessThan(500);
  });

  it('is bounded by the attributes of an element', async () => {
    const attributes = Array.from({ length: 20_000 }, (_, at) => ` a${at}=""`).join('');
    expect((await read(put(`<a${attributes}/>`))).result).to.equal('malformed: too large');
  });

  it('is bounded by the size of SignedInfo, and by the steps of a reference', async () => {
    const wide = good.replace('</SignedInfo>', `${'<x/>'.repeat(200)}</SignedInfo>`);
    expect((await read(wide)).result).to.equal('malformed: SignedInfo is too large');
    const transforms = Array.from({ length: 5 }, () => 'http://www.w3.org/2001/10/xml-exc-c14n#');
    expect((await read(signXml(xmlList(), operator, { transforms }))).result).to.equal(
      'malformed: Transforms',
    );
  });
});
