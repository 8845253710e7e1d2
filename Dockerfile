# The service, as a user without rights. Mount what it serves:
#   docker build -t docsigma .
#   docker run -p 8000:8000 -e DOCSIGMA_API_KEY -v $PWD/model:/model:ro docsigma
FROM python:3.11-slim
RUN useradd --system --no-create-home --uid 10001 docsigma
WORKDIR /app
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt ".[cli,serve]"
USER 10001
# Nothing is written but what libraries keep for themselves.
ENV HOME=/tmp MPLCONFIGDIR=/tmp
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["docsigma", "serve"]
CMD ["/model", "--host", "0.0.0.0"]
