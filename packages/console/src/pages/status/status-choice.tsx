import { nameOfStatus } from './token.ts';

type Props = { readonly label: string; readonly bits: number | undefined };

export function StatusChoice({ label, bits }: Props) {
  const lacksRoom = bits === 1;
  return (
    <label>
      {label}
      <select name="status">
        <option value="1">revoked, for good</option>
        <option value="2" disabled={lacksRoom}>
          suspended{lacksRoom && ' (not in a list of 1 bit)'}
        </option>
        <option value="0">valid again</option>
      </select>
    </label>
  );
}

export function changedInWords(changed: number, status: number): string {
  return `${changed} ${changed === 1 ? 'credential is' : 'credentials are'} ${nameOfStatus(status)} now.`;
}
