import { noticeText, type TrustListData } from './scheme-information.ts';

/** Policies and notices of a stored list: earlier releases permitted both kinds in one list; the first kind is retained. */
export function normalizeNotices(data: TrustListData): TrustListData {
  const { ListAndSchemeInformation: scheme } = data.LoTE ?? {};
  const entries = scheme?.PolicyOrLegalNotice;
  const [firstEntry] = entries ?? [];
  if (scheme === undefined || entries === undefined || firstEntry === undefined) return data;
  const PolicyOrLegalNotice = entries
    .filter((entry) => 'LoTEPolicy' in entry === 'LoTEPolicy' in firstEntry)
    .map((entry) => ('LoTEPolicy' in entry ? entry : { LoTELegalNotice: String(noticeText(entry.LoTELegalNotice)) }));
  return { ...data, LoTE: { ...data.LoTE, ListAndSchemeInformation: { ...scheme, PolicyOrLegalNotice } } };
}
