// Keeps the page up to date: the server sends the content of <main> when it has changed. Elements that
// have not changed stay, so that focus, selection and typed text survive.
const main = document.getElementById('main')
const lost = document.getElementById('lost')

function listen() {
  const source = new EventSource(location.href)
  source.addEventListener('content', ({ data }) => {
    lost.textContent = ''
    const next = document.createElement('main')
    next.innerHTML = data
    adapt(main, next)
  })
  source.addEventListener('full', ({ data }) => {
    lost.textContent = data
  })
  source.addEventListener('error', () => {
    lost.textContent ||= 'No longer up to date: waiting for the service.'
    // CLOSED means that the session has ended or the page is gone. Otherwise the browser connects again by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 1000)
  })
  addEventListener('pagehide', () => source.close())
}

/** Makes the children of `now` those of `next`; elements with an id stay the same elements. */
function adapt(now, next) {
  const kept = new Set([...next.children].map(({ id }) => id).filter(Boolean))
  for (const child of [...now.children]) if (child.id && !kept.has(child.id)) child.remove()
  let place = now.firstChild
  for (const wanted of [...next.childNodes]) {
    const same = wanted.id ? [...now.children].find(({ id }) => id === wanted.id) : undefined
    if (same && same !== place) now.insertBefore(same, place)
    const found = same ?? place
    if (found && isLike(found, wanted)) {
      if (!found.isEqualNode(wanted)) become(found, wanted)
      place = found.nextSibling
    } else now.insertBefore(wanted, place)
  }
  while (place) {
    const after = place.nextSibling
    place.remove()
    place = after
  }
}

const isLike = (found, wanted) => found.nodeName === wanted.nodeName && (found.id ?? '') === (wanted.id ?? '')

function become(found, wanted) {
  if (!(found instanceof Element)) {
    found.data = wanted.data
    return
  }
  for (const { name, value } of wanted.attributes)
    if (found.getAttribute(name) !== value) found.setAttribute(name, value)
  // A reader has opened the elements that have the attribute `open`.
  for (const { name } of [...found.attributes])
    if (name !== 'open' && !wanted.hasAttribute(name)) found.removeAttribute(name)
  adapt(found, wanted)
}

listen()
