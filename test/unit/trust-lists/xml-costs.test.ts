import { expect } from 'chai';
import { MAX_XML_BYTES, XmlTrustedLists } from '../../../adapters/xml/xml-trusted-lists.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';
import { signXml, xmlList } from '../../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const MARK = '<tsl:TrustServiceProviderList>';

describe('The cost of a trusted list in XML', () => {
  const lists = new XmlTrustedLists();
  let operator: Certified;

  before(async () => {
    operator = await certify({ name: 'Operator' });
  });

  const put = (inner: string) => xmlList().replace(MARK, inner + MARK);
  const outcome = (text: string | Buffer, reader = lists) => {
    try {
      reader.read(Buffer.from(text), [operator.certificate], NOW);
      return 'accepted';
    } catch (error) {
      if (error instanceof TrustListRefusal) return error.message;
      throw error;
    }
  };
  /** Limits apply to the document before its signature is looked for. */
  const unsigned = (inner: string) => outcome(put(inner));
  const WITHOUT_SIGNATURE = 'malformed: one signature is wanted, directly below the root element';

  it('is bounded in bytes, elements and namespace declarations', () => {
    expect(outcome(Buffer.alloc(MAX_XML_BYTES + 1, ' '))).to.equal(
      'malformed: lists in XML are read up to 16 MB',
    );
    const small = new XmlTrustedLists({ elements: 50, namespaces: 10 });
    expect(outcome(put('<a/>'.repeat(50)), small)).to.equal('malformed: too large');
    expect(outcome(put('<a xmlns:p="u"/>'.repeat(10)), small)).to.equal('malformed: too large');
    expect(outcome(put('<a xmlns:p="u"/>'.repeat(9)), small)).to.equal(WITHOUT_SIGNATURE);
  });

  it('is bounded in depth', () => {
    const nested = (levels: number) => `${'<a>'.repeat(levels)}${'</a>'.repeat(levels)}`;
    expect(unsigned(nested(39))).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(nested(40))).to.equal('malformed: too large');
  });

  it('is bounded in the number and size of the attributes of an element', () => {
    const attributes = (count: number) => Array.from({ length: count }, (_, at) => ` a${at}=""`).join('');
    expect(unsigned(`<a${attributes(250)}/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(`<a${attributes(251)}/>`)).to.equal('malformed: too large');
    expect(unsigned(`<a b="${'x'.repeat(100_000)}"/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(`<a b="${'x'.repeat(200_000)}"/>`)).to.equal('malformed: too large');
  });

  it('is bounded in the text of an element, also where references and sections make it up', () => {
    expect(unsigned(`<a>${'x'.repeat(1_000_000)}</a>`)).to.equal(WITHOUT_SIGNATURE);
    for (const text of ['x'.repeat(1_100_000), '&amp;'.repeat(1_100_000), '<![CDATA[x]]>'.repeat(1_100_000)])
      expect(unsigned(`<a>${text}</a>`)).to.equal('malformed: too large');
  });

  it('is bounded in the canonical form, which may repeat a long namespace with each element', () => {
    const uri = `urn:${'x'.repeat(50_000)}`;
    const declared = put('<a><p:b/></a>'.repeat(2_000)).replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`);
    const exclusive = signXml(xmlList(), operator);
    const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(exclusive) ?? [];
    const end = '</tsl:TrustServiceStatusList>';
    expect(outcome(declared.replace(end, signature + end))).to.equal('malformed: too large');
  });

  it('does not include the digest of the document where the signature is not of a pinned signer', async () => {
    const stranger = await certify({ name: 'Stranger' });
    // Its canonical form is too large to be computed, which is not noticed.
    const uri = `urn:${'x'.repeat(50_000)}`;
    const small = signXml(xmlList(), stranger, { shown: operator.certificate });
    const large = small
      .replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`)
      .replace(MARK, '<a><p:b/></a>'.repeat(2_000) + MARK);
    expect(outcome(large)).to.equal('signature');
  });

  it('is bounded in the size of SignedInfo, and in the transforms of a reference', () => {
    const wide = signXml(xmlList(), operator).replace('</SignedInfo>', `${'<x/>'.repeat(200)}</SignedInfo>`);
    expect(outcome(wide)).to.equal('malformed: SignedInfo is too large');
    const long = signXml(xmlList(), operator).replace('</SignedInfo>', `${' '.repeat(300_000)}</SignedInfo>`);
    expect(outcome(long)).to.equal('malformed: SignedInfo is too large');
    const transforms = Array.from({ length: 5 }, () => 'http://www.w3.org/2001/10/xml-exc-c14n#');
    expect(outcome(signXml(xmlList(), operator, { transforms }))).to.equal('malformed: Transforms');
  });
});
