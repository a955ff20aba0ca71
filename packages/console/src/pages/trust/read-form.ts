import { type CertificatePurpose, MAX_FILE_BYTES, type Reading, readCertificates } from './read-certificates.ts';

const MAX_FILES = 20;
export const NOTHING: Reading = { found: [], refused: [], hasKey: false };

/**
 * The certificates of a form: of its files, and of its pasted text. Nothing is kept of what is refused.
 * @param form with `file` and `text`.
 */
export async function readForm(form: FormData, wanted: CertificatePurpose, now = new Date()): Promise<Reading> {
  const files = form.getAll('file').filter((entry): entry is File => entry instanceof File && entry.size > 0);
  const text = String(form.get('text') ?? '').trim();
  if (files.length > MAX_FILES) return { ...NOTHING, refused: [`These are more than ${MAX_FILES} files; give fewer.`] };
  if (files.length === 0 && text === '') return { ...NOTHING, refused: ['Choose a file, or paste a certificate.'] };
  const readings: Reading[] = [];
  for (const file of files) {
    // What is too big is not read.
    const content = file.slice(0, MAX_FILE_BYTES + 1);
    readings.push(readCertificates(new Uint8Array(await content.arrayBuffer()), file.name, wanted, now));
  }
  if (text !== '') readings.push(readCertificates(new TextEncoder().encode(text), 'The text', wanted, now));
  return {
    found: readings.flatMap(({ found }) => found),
    refused: readings.flatMap(({ refused }) => refused),
    hasKey: readings.some(({ hasKey }) => hasKey),
  };
}
