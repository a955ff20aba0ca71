/** One encapsulated certificate (RFC 7468 sections 3 and 5.1). */
const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';
const LINE = 64;

/**
 * Reads PEM certificates in the order in which they stand, in time that grows with the text and no faster: it comes
 * from strangers.
 * @returns DER in standard base64 (the form of `x5c`), or `undefined` when there is none, there are more than
 *   `max`, anything but white space stands between the blocks, or a block is not one DER SEQUENCE.
 */
export function readPemCertificates(text: string, max = 10): readonly string[] | undefined {
  const certificates: string[] = [];
  let at = 0;
  for (let begin = text.indexOf(BEGIN); begin >= 0; begin = text.indexOf(BEGIN, at)) {
    const end = text.indexOf(END, begin);
    if (end < 0 || !isBlank(text.slice(at, begin)) || certificates.length === max) return undefined;
    const base64 = text.slice(begin + BEGIN.length, end).replace(/\s/g, '');
    const der = Buffer.from(base64, 'base64');
    if (der.toString('base64') !== base64 || !isOneSequence(der)) return undefined;
    certificates.push(base64);
    at = end + END.length;
  }
  return certificates.length === 0 || !isBlank(text.slice(at)) ? undefined : certificates;
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** @param certificates DER in standard base64. @returns the PEM blocks one after the other. */
export function writePemCertificates(certificates: readonly string[]): string {
  return certificates.map((base64) => writePem('CERTIFICATE', base64)).join('');
}

/** @param base64 DER in standard base64. @returns one block (RFC 7468 section 3). */
export function writePem(label: string, base64: string): string {
  const lines = base64.match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Whether the bytes are one SEQUENCE of definite, minimally written length (X.690 section 10.1), and no more. */
function isOneSequence(der: Buffer): boolean {
  const [tag, first] = der;
  if (tag !== 0x30 || first === undefined) return false;
  if (first < 0x80) return der.length === 2 + first;
  const octets = first - 0x80;
  if (octets < 1 || octets > 4 || der.length < 2 + octets) return false;
  const length = der.readUIntBE(2, octets);
  const minimal = length >= 0x80 && length >= 2 ** (8 * (octets - 1));
  return minimal && der.length === 2 + octets + length;
}
