// The samples of /metrics as a map from `name{labels}` to number.
export async function metricsOf(api) {
  const { text } = await api.get('/metrics', { status: 200 });
  const samples = text.split('\n').filter((line) => line && !line.startsWith('#'));
  return new Map(samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}
